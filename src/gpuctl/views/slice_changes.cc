#include "gpuctl/views/slice_changes.h"

#include <ostream>

#include "base/join_text.h"
#include "base/plural.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {
namespace {

std::string value_text(const SliceSetting& setting, const ipc::SliceSettings& settings) {
  if (differs_by_gpu(setting, settings)) return printable(amount_value(setting, settings));
  if (setting.lifted != nullptr && settings.*setting.lifted) return "none";
  if (setting.kind == SettingKind::join && settings.*setting.text)
    return printable(join_names(*(settings.*setting.text)));
  if (setting.text != nullptr) return printable((settings.*setting.text).value_or("-"));
  if (!(settings.*setting.number)) return "-";
  const std::int64_t number = *(settings.*setting.number);
  switch (setting.kind) {
    case SettingKind::bytes:
      return format_bytes(number);
    case SettingKind::milliseconds:
      return std::to_string(number) + "ms";
    case SettingKind::user:
      return user_name(number);
    case SettingKind::group:
      return group_name(number);
    default:
      return std::to_string(number);
  }
}

/// "max 5 -> none, weight 100 -> 50"; of a new slice what is not the default.
std::string settings_text(const ipc::SliceDifference& difference) {
  ipc::SliceSettings fresh;  // of whom the owner is said in any case
  for (const SliceSetting& setting : kSliceSettings) {
    if (setting.lifted != nullptr) fresh.*setting.lifted = true;
    if (setting.text != nullptr) fresh.*setting.text = setting.text_default;
    if (setting.number != nullptr && setting.lifted == nullptr) fresh.*setting.number = setting.number_default;
  }
  const ipc::SliceSettings& before = difference.before ? *difference.before : fresh;
  std::string text;
  for (const SliceSetting& setting : kSliceSettings) {
    if (!is_given(setting, *difference.after) || setting.is_per_gpu()) continue;
    const std::string old = value_text(setting, before), now = value_text(setting, *difference.after);
    if (old == now) continue;
    text.append(text.empty() ? "" : ", ").append(setting.name).append(" ");
    if (difference.before) text.append(old).append(" -> ");
    text += now;
  }
  return text;
}

std::string line_of(const ipc::SliceDifference& difference, bool dry_run) {
  const char* verb = !difference.before  ? (dry_run ? "would create " : "created ")
                     : !difference.after ? (dry_run ? "would delete " : "deleted ")
                                         : (dry_run ? "would change " : "changed ");
  std::string line = verb + printable(difference.path);
  if (difference.after) {
    const std::string settings = settings_text(difference);
    if (!settings.empty()) line += ": " + settings;
  }
  return difference.clients == 0 ? line : line + " (" + plural(difference.clients, "program") + ")";
}

}  // namespace

Outcome<int> print_changes(Context& context, const boost::json::object& reply, bool dry_run) {
  const auto changes =
      decode_reply(reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::SliceDifference>(fields, "changes"); });
  if (!changes) return changes.error();
  if (changes->empty()) context.out << "nothing to change\n";
  for (const ipc::SliceDifference& difference : *changes) context.out << line_of(difference, dry_run) << '\n';
  return kExitOk;
}

}  // namespace gpuctl::cli
