#include "gpuctld/manager/event_kinds.h"

#include <algorithm>

#include "base/limit_text.h"
#include "gpuctld/protocol/convert.h"

namespace gpuctl::daemon {

namespace {

/// No group owns what has kNoGroup as owner_gid.
std::string number_text(const SliceSetting& setting, std::int64_t number) {
  if (setting.kind == SettingKind::group && number == kNoGroup) return "none";
  return setting.kind == SettingKind::bytes ? size_text(number) : std::to_string(number);
}

std::string value_text(const SliceSetting& setting, const ipc::SliceSettings& settings) {
  if (differs_by_gpu(setting, settings)) return amount_value(setting, settings);
  if (setting.lifted != nullptr && settings.*setting.lifted) return "none";
  if (setting.text != nullptr) return (settings.*setting.text).value_or("");
  const auto& number = settings.*setting.number;
  return number ? number_text(setting, *number) : "";
}

std::string default_text(const SliceSetting& setting) {
  if (setting.lifted != nullptr) return "none";
  return setting.text != nullptr ? std::string(setting.text_default) : number_text(setting, setting.number_default);
}

std::string who(const ipc::Event& event, const std::string& more) {
  return "process " + std::to_string(event.pid.value_or(0)) + " (" + event.command + more + ")";
}

}  // namespace

std::vector<std::pair<std::string_view, std::string>> journal_fields(const ipc::Event& event) {
  const auto kind = std::ranges::find(kEventKinds, event.kind, &EventKind::name);
  std::vector<std::pair<std::string_view, std::string>> fields{{"MESSAGE_ID", std::string(kind->message_id)},
                                                               {"PRIORITY", std::to_string(kind->priority)},
                                                               {"GPUCTL_EVENT", event.kind}};
  if (!event.slice.empty()) fields.emplace_back("GPUCTL_SLICE", event.slice);
  if (event.uid) fields.emplace_back("GPUCTL_UID", std::to_string(*event.uid));
  if (event.pid) fields.emplace_back("GPUCTL_PID", std::to_string(*event.pid));
  if (!event.command.empty()) fields.emplace_back("GPUCTL_COMMAND", event.command);
  return fields;
}

std::string who(const ipc::Event& event) {
  return who(event, "");
}

std::string who_in_slice(const ipc::Event& event) {
  return who(event, ", slice " + event.slice);
}

std::string user_words(std::uint32_t uid) {
  return uid == 0 ? "root" : "user " + std::to_string(uid);
}

std::string counts_text(const std::vector<ipc::ClientUsage>& usage) {
  std::int64_t launches = 0, evictions = 0;
  const auto add = [](std::int64_t& sum, std::int64_t more) {  // a program may have counted anything
    if (__builtin_add_overflow(sum, more, &sum)) sum = kEndless;
  };
  for (const ipc::ClientUsage& on : usage) add(launches, on.launches), add(evictions, on.evictions);
  return "launches " + std::to_string(launches) + ", evictions " + std::to_string(evictions);
}

std::string change_text(const sched::Slice* before, const sched::Slice& after) {
  const ipc::SliceSettings then = before != nullptr ? to_settings(*before) : ipc::SliceSettings(),
                           now = to_settings(after);
  std::string text;
  for (const SliceSetting& setting : kSliceSettings) {
    const std::string old = before != nullptr ? value_text(setting, then) : default_text(setting),
                      value = value_text(setting, now);
    if (old == value || setting.is_per_gpu()) continue;
    text.append(text.empty() ? "" : ", ").append(setting.name).append(" ");
    if (before != nullptr) text.append(old).append(" -> ");
    text += value;
  }
  return text;
}

}  // namespace gpuctl::daemon
