#include "gpuctld/config/state.h"

#include <algorithm>
#include <boost/json/parse.hpp>

#include "base/one_line.h"
#include "gpuctld/protocol/convert.h"
#include "ipc/codec.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

namespace {

constexpr sched::Caller kDaemon{0, {}};

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

}  // namespace

void restore_slices(const State& state, sched::SliceTree& tree, std::vector<std::string>& notes) {
  for (const auto& [path, settings] : state.slices) {
    sched::SliceChange change = settings;
    const auto apply = [&, &path = path] {
      return path == "/" ? tree.change(path, change, kDaemon) : tree.create(path, change, kDaemon);
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
  sched::SliceTree wanted = tree;
  std::map<std::string, std::string> said;
  for (const ConfiguredSlice& slice : config.slices) {
    const std::string text = ipc::to_text(ipc::to_json(slice.change));
    said[slice.path] = text;
    const bool exists = wanted.find(slice.path) != nullptr;
    const auto before = configured.find(slice.path);
    if (exists && !force && before != configured.end() && before->second == text) continue;
    // What slices below need, such as a reserve, cannot go back to its default.
    if (exists && before != configured.end() &&
        wanted.change(slice.path, with_defaults(slice.change, before->second, owner), kDaemon))
      continue;
    const auto result =
        exists ? wanted.change(slice.path, slice.change, kDaemon) : wanted.create(slice.path, slice.change, kDaemon);
    if (result) continue;
    const sched::SliceError& error = result.error();
    const bool unfit = error.code == sched::SliceError::Code::reserve_does_not_fit;
    const std::string field = unfit ? "reserve" : error.field;
    const auto found = slice.where_of.find(field);
    return fail((found == slice.where_of.end() ? slice.where : found->second) + ": slice.\"" + slice.path + "\"" +
                (unfit                   ? ".reserve: " + error.message()
                 : error.field == "path" ? ": " + error.reason
                 : error.field.empty()   ? ": " + error.message()
                                         : "." + error.message()));
  }
  for (const auto& [path, before] : configured)
    if (!said.contains(path) && wanted.find(path) != nullptr)
      (void)wanted.change(path, with_defaults({}, before, owner), kDaemon);
  tree = std::move(wanted);
  configured = std::move(said);
  return {};
}

State current_state(const sched::SliceTree& tree, const std::map<std::string, std::string>& configured) {
  State state;
  for (const auto& [path, slice] : tree.slices()) state.slices.emplace_back(path, to_settings(slice));
  state.configured = configured;
  return state;
}

}  // namespace gpuctl::daemon
