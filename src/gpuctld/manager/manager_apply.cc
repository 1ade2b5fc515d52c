// The whole tree at once: ApplySlices, as `gpuctl apply` wants it, and NoteSaved, after `gpuctl save`.
#include <algorithm>
#include <map>
#include <set>

#include "base/one_line.h"
#include "base/slurm_job.h"
#include "gpuctld/config/state.h"
#include "gpuctld/manager/manager.h"
#include "gpuctld/protocol/answers.h"
#include "gpuctld/protocol/convert.h"
#include "ipc/codec.h"
#include "sched/slices.h"
#include "slicefile/drop_in.h"

namespace gpuctl::daemon {

namespace {

using WantedTree = std::map<std::string, ipc::SliceSettings, sched::PathLess>;

/// The defaults in place of what is absent. Nothing is known of an owner: a slice that exists keeps its own.
void complete(ipc::SliceSettings& settings) {
  for (const SliceSetting& setting : kSliceSettings) {
    if (is_given(setting, settings) || setting.kind == SettingKind::user || setting.kind == SettingKind::group)
      continue;
    if (setting.lifted != nullptr)
      settings.*setting.lifted = true;
    else if (setting.text != nullptr)
      settings.*setting.text = setting.text_default;
    else
      settings.*setting.number = setting.number_default;
  }
}

WantedTree read_tree(ipc::Fields& fields) {
  WantedTree wanted;
  for (ipc::WantedSlice& slice : ipc::read_list<ipc::WantedSlice>(fields, "slices")) {
    if (slice.path != "/") complete(slice.settings);
    if (!wanted.emplace(slice.path, std::move(slice.settings)).second)
      fields.complain("slices", "names slice '" + slice.path + "' twice");
  }
  return wanted;
}

/// What is not wanted, the deepest slices first. Slices of Slurm's jobs go with their jobs, so those stay, and what is
/// above them.
std::vector<std::string> not_wanted(const WantedTree& wanted, const sched::Slices& slices) {
  std::vector<std::string> gone;
  std::set<std::string_view> stay{"/"};
  for (auto slice = slices.rbegin(); slice != slices.rend(); ++slice) {
    const std::string& path = slice->first;
    if (stay.contains(path) || belongs_to_slurm_job(path))
      stay.insert(sched::parent_path(path));
    else if (!wanted.contains(path))
      gone.push_back(path);
  }
  return gone;
}

/// Deletes what is not wanted, and makes or changes the rest.
sched::SliceResult<void> apply(const WantedTree& wanted, const sched::Caller& caller,
                               const std::function<std::size_t(std::string_view)>& clients_in, sched::SliceTree& tree) {
  for (const auto& [path, settings] : wanted)
    if (const auto above = sched::parent_path(path); path != "/" && above != "/" && !wanted.contains(above))
      return sched::SliceError{.code = sched::SliceError::Code::invalid_value,
                               .path = path,
                               .field = "slices",
                               .reason = "'" + path + "' is named, and '" + std::string(above) + "' above it is not"};
  for (const std::string& path : not_wanted(wanted, tree.slices()))
    if (auto removed = tree.remove(path, clients_in(path), caller); !removed) return removed;
  std::vector<sched::SliceTree::Edit> edits;
  for (const auto& [path, settings] : wanted) edits.push_back({path, &settings});
  std::size_t at = 0;
  return tree.apply(edits, caller, tree.capacity(), at);
}

}  // namespace

/// What the tree would be, compared with what it is.
std::vector<ipc::SliceDifference> Manager::differences(const sched::SliceTree& tree) const {
  const sched::SliceTree& now = scheduler_.tree();
  std::vector<ipc::SliceDifference> changes;
  const auto note = [&](const std::string& path, std::optional<ipc::SliceSettings> before,
                        std::optional<ipc::SliceSettings> after) {
    if (before == after) return;
    std::size_t clients = 0;
    for (const auto& [other, slice] : now.slices())
      if (sched::in_or_below(other, path)) clients += scheduler_.clients_in(other);
    changes.push_back({path, std::move(before), std::move(after), static_cast<std::int64_t>(clients)});
  };
  for (const auto& [path, slice] : now.slices())
    if (tree.find(path) == nullptr) note(path, to_settings(slice), std::nullopt);
  for (const auto& [path, slice] : tree.slices()) {
    const sched::Slice* before = now.find(path);
    note(path, before == nullptr ? std::nullopt : std::optional(to_settings(*before)), to_settings(slice));
  }
  return changes;
}

/// The slices that are there, not in the tree, and that the configuration makes again. Read now: `gpuctl save` and
/// people write its files meanwhile. There may be many, and reading them keeps all waiting. So who makes and deletes
/// slices of his own does not have them read: of such slices the daemon knows whether the configuration named them.
std::vector<std::string> Manager::come_back(const sched::SliceTree& tree, std::uint32_t caller) const {
  std::vector<std::string> lines;
  const auto was_named = [&](const auto& slice) {
    return tree.find(slice.first) == nullptr && kept_.configured().contains(slice.first);
  };
  if (options_.config_file.empty()) return lines;
  if (!budgets_.exempt(caller) && std::ranges::none_of(scheduler_.tree().slices(), was_named)) return lines;
  const ConfigOutcome outcome = read_config(options_.config_file, false);
  const auto saved = slicefile::saved_drop_ins(options_.config_file + ".d");
  for (const ConfiguredSlice& slice : outcome.config.slices) {
    if (scheduler_.tree().find(slice.path) == nullptr || tree.find(slice.path) != nullptr) continue;
    const bool is_saved =
        std::ranges::any_of(saved, [&](const std::string& file) { return slice.where.starts_with(file + ":"); });
    lines.push_back(one_line(slice.where + " names slice " + slice.path +
                             ": it is there again once gpuctld starts anew, as at boot, or is reloaded; " +
                             (is_saved ? "remove that file, or run gpuctl save, which keeps all slices as they are then"
                                       : "take it out there")));
  }
  return lines;
}

Answer Manager::apply_slices(Session& session, ipc::Fields& fields) {
  const WantedTree wanted = read_tree(fields);
  const bool dry_run = fields.maybe_boolean("dry_run").value_or(false);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  sched::SliceTree tree = scheduler_.tree();
  const auto clients_in = [this](std::string_view path) { return scheduler_.clients_in(path); };
  if (const auto applied = apply(wanted, caller(session), clients_in, tree); !applied)
    return refuse_with_programs(applied.error(), false, session);

  std::vector<std::string> doubts;
  if (const auto refused = refuse_targets(tree, doubts)) return refuse(*refused);
  for (std::string& line : come_back(tree, session.peer().uid)) doubts.push_back(std::move(line));
  if (dry_run) return checked(tree, {}, doubts);
  const std::vector<ipc::SliceDifference> changes = differences(tree);
  boost::json::object reply{{"changes", ipc::to_json(changes)}};
  if (!changes.empty()) change_tree(std::move(tree), session.peer().uid);
  return changed(std::move(reply), {}, doubts);
}

Answer Manager::note_saved(Session& session, ipc::Fields& fields) {
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  if (!scheduler_.tree().may_change_below("/", caller(session)))
    return refuse(
        sched::SliceError{.code = sched::SliceError::Code::permission_denied, .path = "/", .field = {}, .reason = {}});
  const ConfigOutcome outcome = read_config(options_.config_file, options_.config_required);
  if (!outcome.problems.empty()) return invalid("configuration", outcome.problems.front());
  auto configured = kept_.configured();
  daemon::note_saved(outcome.config, options_.root_uid, scheduler_.tree(), configured);
  kept_.set_configured(std::move(configured));
  kept_.save_slices();
  return success();
}

}  // namespace gpuctl::daemon
