// Targets of latency as people write them, on the command line and in gpuctl.toml: none, 5ms, 1.3x.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/time_text.h"

namespace gpuctl {

/// What the 99th percentile of a slice's bursts is to be at most: a time, or a multiple of what it is alone, or
/// neither.
struct LatencyTarget {
  std::chrono::nanoseconds at_most{};  ///< 0: no time is given
  double multiple = 0;                 ///< 0: no multiple is given

  bool any() const { return at_most.count() > 0 || multiple > 0; }
  bool operator==(const LatencyTarget&) const = default;
};

inline constexpr std::chrono::microseconds kLeastTarget{10};
inline constexpr std::chrono::seconds kGreatestTarget{3600};
inline constexpr double kGreatestMultiple = 1000;

/// What a value must look like, for errors.
inline constexpr std::string_view kLatencyForm =
    "a time from 10us to 3600s such as 5ms, a multiple from 1x to 1000x such as 1.3x, or none";

/// Empty unless the text is kLatencyForm.
inline std::optional<LatencyTarget> parse_latency(std::string_view text) {
  if (text == "none") return LatencyTarget{};
  const auto parsed = parse_number_and_unit(text);
  if (!parsed) return std::nullopt;
  if (parsed->unit == "x") {
    if (parsed->number < 1 || parsed->number > kGreatestMultiple) return std::nullopt;
    return LatencyTarget{.multiple = parsed->number};
  }
  const auto at_most = time_of(*parsed, kLeastTarget, kGreatestTarget);
  return at_most ? std::optional(LatencyTarget{.at_most = *at_most}) : std::nullopt;
}

}  // namespace gpuctl
