// The bandwidth of a slice as people write it: "40ms/100ms", and a burst, "20ms". It is cgroup v2's cpu.max and
// cpu.max.burst, for the time of a GPU. Either is for every GPU, or a list of what single ones have,
// "40ms/100ms,1:none", as of base/per_gpu.h.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parts.h"
#include "base/per_gpu.h"
#include "base/time_text.h"

namespace gpuctl {

/// In each period so much time of the whole GPU, and what was left unused of it, up to `burst`.
struct Quota {
  std::chrono::nanoseconds time{};    ///< at most the period
  std::chrono::nanoseconds period{};  ///< 0: there is no quota
  std::chrono::nanoseconds burst{};   ///< at most `time`

  bool any() const { return period.count() > 0; }
  bool operator==(const Quota&) const = default;
};

/// The text of either setting by which there is none.
inline constexpr std::string_view kNoQuota = "none";

/// The daemon looks at busy programs each 5 ms: a shorter period could not be kept, and less than this not be seen.
inline constexpr std::chrono::milliseconds kLeastPeriod{10}, kGreatestPeriod{1000}, kLeastQuota{1};

/// What such values must look like, for errors.
inline constexpr std::string_view kQuotaForm =
    "none, or a time of each period such as 40ms/100ms: from 1ms to the whole period, which is from 10ms to 1s; "
    "for one GPU 0:40ms/100ms, or a list that names each GPU once such as 40ms/100ms,1:none";
inline constexpr std::string_view kBurstForm =
    "none, or a time from 1ms to 1s such as 20ms; for one GPU 0:20ms, or a list that names each GPU once such as "
    "20ms,1:none";

/// Without a burst. Empty unless the text is that of one GPU.
inline std::optional<Quota> parse_quota(std::string_view text) {
  if (text == kNoQuota) return Quota{};
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto time = parse_number_and_unit(text.substr(0, slash)),
             period = parse_number_and_unit(text.substr(slash + 1));
  if (!time || !period) return std::nullopt;
  const auto every = time_of(*period, kLeastPeriod, kGreatestPeriod);
  const auto most = every ? time_of(*time, kLeastQuota, *every) : std::nullopt;
  return most ? std::optional(Quota{.time = *most, .period = *every}) : std::nullopt;
}

/// The same of a burst.
inline std::optional<std::chrono::nanoseconds> parse_burst(std::string_view text) {
  if (text == kNoQuota) return std::chrono::nanoseconds{};
  const auto parsed = parse_number_and_unit(text);
  return parsed ? time_of(*parsed, kLeastQuota, kGreatestPeriod) : std::nullopt;
}

/// The GPUs that the text of either names, each by its index or the beginning of its UUID.
inline std::vector<std::string> gpus_of_quota(std::string_view text) {
  std::vector<std::string> gpus;
  each_part(text, [&](std::string_view part) {
    if (const std::size_t colon = part.rfind(':'); colon != part.npos) gpus.emplace_back(part.substr(0, colon));
    return true;
  });
  return gpus;
}

/// What the text of either has for this GPU: the part that names it, or that for every GPU that no part names.
inline std::string quota_on(std::string_view text, std::int64_t index, std::string_view uuid) {
  std::string_view others = kNoQuota, own;
  each_part(text, [&](std::string_view part) {
    const std::size_t colon = part.rfind(':');
    if (colon == part.npos)
      others = part;
    else if (own.empty() && names_gpu(part.substr(0, colon), index, uuid))
      own = part.substr(colon + 1);
    return true;
  });
  return std::string(own.empty() ? others : own);
}

/// Whether each part is sound, names a GPU that none before it names, or comes first and is for every other one.
template <class Sound>
bool is_quota_list(std::string_view text, Sound sound) {
  std::vector<std::string_view> before;
  return each_part(text, [&](std::string_view part) {
    const std::size_t colon = part.rfind(':');
    const bool for_all = colon == part.npos;
    const std::string_view gpu = for_all ? std::string_view() : part.substr(0, colon);
    if (!(for_all ? before.empty() : is_gpu_name(gpu)) || std::ranges::find(before, gpu) != before.end()) return false;
    before.push_back(gpu);
    return before.size() <= kMostPerGpu && sound(for_all ? part : part.substr(colon + 1));
  });
}

/// Whether the text is kQuotaForm, and kBurstForm.
inline bool is_quota(std::string_view text) {
  return is_quota_list(text, [](std::string_view part) { return parse_quota(part).has_value(); });
}
inline bool is_burst(std::string_view text) {
  return is_quota_list(text, [](std::string_view part) { return parse_burst(part).has_value(); });
}

}  // namespace gpuctl
