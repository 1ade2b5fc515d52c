// The bandwidth of a slice as people write it: "40ms/100ms", and a burst, "20ms". It is cgroup v2's cpu.max and
// cpu.max.burst, for the time of a GPU.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

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
    "none, or a time of each period such as 40ms/100ms: from 1ms to the whole period, which is from 10ms to 1s";
inline constexpr std::string_view kBurstForm = "none, or a time from 1ms to 1s such as 20ms";

/// Without a burst. Empty unless the text is kQuotaForm.
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

/// Empty unless the text is kBurstForm.
inline std::optional<std::chrono::nanoseconds> parse_burst(std::string_view text) {
  if (text == kNoQuota) return std::chrono::nanoseconds{};
  const auto parsed = parse_number_and_unit(text);
  return parsed ? time_of(*parsed, kLeastQuota, kGreatestPeriod) : std::nullopt;
}

}  // namespace gpuctl
