#include "gpuctld/config/state.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/one_line.h"
#include "base/sm_range.h"
#include "ipc/codec.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

namespace {

constexpr sched::Caller kDaemon{0, {}};

/// What fits some GPU is a sound setting: a GPU that is too small has as much in force of it as fits
/// (sched/effective/fit_reserves.h). Which GPUs there are must not decide whether the daemon starts.
constexpr sched::CapSM kAnyDevice{kMaxSms};

/// `now`, and the default of every setting that the configuration said `before`, as the state has it, and says no more.
sched::SliceChange with_defaults(sched::SliceChange now, const std::string& before, std::uint32_t owner) {
  boost::system::error_code broken;
  const boost::json::value value = boost::json::parse(before, broken);
  sched::SliceChange said;
  if (broken || !value.is_object()) return now;
  ipc::Fields fields(value.get_object());
  ipc::read(fields, said);
  for (const SliceSetting& setting : kSliceSettings) {
    if (!is_given(setting, said) || is_given(setting, now)) continue;
    if (setting.lifted != nullptr)
      now.*setting.lifted = true;
    else if (setting.text != nullptr)
      now.*setting.text = setting.text_default;
    else
      now.*setting.number = setting.kind == SettingKind::user ? owner : setting.number_default;
  }
  return now;
}

/// What the configuration says of a slice, to compare it with what it said.
std::string said_text(const ConfiguredSlice& slice) {
  return ipc::to_text(ipc::to_json(slice.change));
}

/// What becomes of a slice by the configuration.
struct Wanted {
  const ConfiguredSlice* slice = nullptr;  ///< null: the configuration says nothing of it any more
  sched::SliceChange change;
  std::optional<sched::SliceChange> goes_back;  ///< with the defaults of what it no longer says
};

Error refused(const ConfiguredSlice& slice, const sched::SliceError& error) {
  const bool unfit = error.code == sched::SliceError::Code::reserve_does_not_fit;
  const std::string field = unfit ? "reserve" : error.field;
  const auto found = slice.where_of.find(field);
  return fail((found == slice.where_of.end() ? slice.where : found->second) + ": slice.\"" + slice.path + "\"" +
              (unfit                   ? ".reserve: " + error.message()
               : error.field == "path" ? ": " + error.reason
               : error.field.empty()   ? ": " + error.message()
                                       : "." + error.message()));
}

}  // namespace

void restore_slices(const State& state, sched::SliceTree& tree, std::vector<std::string>& notes) {
  for (const auto& [path, settings] : state.slices) {
    sched::SliceChange change = settings;
    const auto apply = [&, &path = path] {
      std::size_t at = 0;
      const sched::SliceTree::Edit edit{path, &change};
      return tree.apply({&edit, 1}, kDaemon, kAnyDevice, at);
    };
    for (const SliceSetting& setting : kSliceSettings)
      if (path == "/" && !setting.on_root) drop(setting, change);  // the GPU itself decides these
    auto restored = apply();
    while (!restored) {
      const sched::SliceError& error = restored.error();
      const bool unfit = error.code == sched::SliceError::Code::reserve_does_not_fit;
      const auto at_fault =
          std::ranges::find(kSliceSettings, unfit ? "reserve" : std::string_view(error.field), &SliceSetting::name);
      if (at_fault == kSliceSettings.end() || !is_given(*at_fault, change)) break;
      notes.push_back(one_line(unfit ? error.message() + "; restored without one"
                                     : "slice " + path + ": " + error.message() + "; left out"));
      drop(*at_fault, change);
      restored = apply();
    }
    if (!restored) notes.push_back(one_line("slice " + path + " is not restored: " + restored.error().message()));
  }
}

Result<void> apply_config(const Config& config, bool force, std::uint32_t owner,
                          std::map<std::string, std::string>& configured, sched::SliceTree& tree) {
  std::map<std::string, Wanted, sched::PathLess> wanted;
  std::map<std::string, std::string> said;
  for (const ConfiguredSlice& slice : config.slices) {
    const std::string text = said_text(slice);
    said[slice.path] = text;
    const bool exists = tree.find(slice.path) != nullptr;
    const auto before = configured.find(slice.path);
    if (exists && !force && before != configured.end() && before->second == text) continue;
    Wanted& one = wanted[slice.path] = {.slice = &slice, .change = slice.change, .goes_back = {}};
    if (exists && before != configured.end()) one.goes_back = with_defaults(slice.change, before->second, owner);
  }
  for (const auto& [path, before] : configured)
    if (!said.contains(path) && tree.find(path) != nullptr)
      wanted[path] = {.slice = nullptr, .change = {}, .goes_back = with_defaults({}, before, owner)};
  for (;;) {
    std::vector<sched::SliceTree::Edit> edits;
    for (const auto& [path, one] : wanted) edits.push_back({path, one.goes_back ? &*one.goes_back : &one.change});
    std::size_t at = 0;
    const auto applied = tree.apply(edits, kDaemon, kAnyDevice, at);
    if (applied) break;
    const std::string at_fault(edits[at].path);
    // What slices below need, such as a reserve, cannot go back to its default.
    const auto stays = [&](auto& entry) { return sched::in_or_below(at_fault, entry.first) && entry.second.goes_back; };
    const std::size_t gone =
        std::erase_if(wanted, [&](const auto& entry) { return stays(entry) && entry.second.slice == nullptr; });
    bool again = gone > 0;
    for (auto& entry : wanted)
      if (stays(entry)) entry.second.goes_back.reset(), again = true;
    if (!again) return refused(*wanted.find(at_fault)->second.slice, applied.error());
  }
  configured = std::move(said);
  return {};
}

void note_saved(const Config& config, std::uint32_t owner, const sched::SliceTree& tree,
                std::map<std::string, std::string>& configured) {
  std::set<std::string_view> said;
  for (const ConfiguredSlice& slice : config.slices) {
    said.insert(slice.path);
    const auto before = configured.find(slice.path);
    if (tree.changes_nothing(
            slice.path, before == configured.end() ? slice.change : with_defaults(slice.change, before->second, owner)))
      configured[slice.path] = said_text(slice);
  }
  std::erase_if(configured, [&](const auto& entry) {
    return !said.contains(entry.first) && (tree.find(entry.first) == nullptr ||
                                           tree.changes_nothing(entry.first, with_defaults({}, entry.second, owner)));
  });
}

}  // namespace gpuctl::daemon
