#include "sched/slice.h"

#include <algorithm>

#include "base/parts.h"
#include "sched/policy.h"

namespace gpuctl::sched {

std::string policy_text(const Slice& slice) {
  return slice.job_policy.empty() ? std::string(slice.policy->name) : slice.job_policy;
}

Quota quota_of(const Slice& slice) {
  Quota quota = parse_quota(slice.quota).value();
  quota.burst = std::min(parse_burst(slice.burst).value(), quota.time);
  return quota;
}

bool has_quota(const Slice& slice) {
  return !each_part(slice.quota, [](std::string_view part) { return part.substr(part.rfind(':') + 1) == kNoQuota; });
}

std::string join_text(const Slice& slice) {
  std::string text;
  for (const Join& join : slice.join)
    text.append(text.empty() ? "" : ",").append(kJoinWords[static_cast<std::size_t>(join.by)]) += ':' + join.text;
  return text.empty() ? std::string(kNobodyJoins) : text;
}

std::string_view mode_name(ReserveMode mode) {
  return kReserveModes[static_cast<std::size_t>(mode)];
}

std::optional<ReserveMode> reserve_mode(std::string_view name) {
  for (std::size_t i = 0; i < kReserveModes.size(); ++i)
    if (kReserveModes[i] == name) return static_cast<ReserveMode>(i);
  return std::nullopt;
}

std::string SliceError::message() const {
  switch (code) {
    case Code::no_such_slice:
      return "no such slice: " + path;
    case Code::slice_exists:
      return "slice " + path + " exists already";
    case Code::slice_busy:
      return "slice " + path + " is in use: " + std::to_string(clients) + " clients, " + std::to_string(children) +
             " children";
    case Code::invalid_value:
      return field + ": " + reason;
    case Code::reserve_does_not_fit:
      return "reserve of slice " + path + " does not fit: " + std::to_string(asked) + " asked, " +
             std::to_string(available) + " available" + (gpu ? " on GPU " + std::to_string(*gpu) : "");
    case Code::permission_denied:
      return "permission denied: " + path;
    case Code::no_slice:
      return "no slice is named, and none takes the program in";
  }
  return "unknown error";
}

}  // namespace gpuctl::sched
