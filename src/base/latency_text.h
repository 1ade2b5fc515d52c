// Targets of latency as people write them, on the command line and in gpuctl.toml: none, 5ms, 1.3x.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

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
  double value = 0;
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (unit == "x") {
    if (value < 1 || value > kGreatestMultiple) return std::nullopt;
    return LatencyTarget{.multiple = value};
  }
  const double ns = unit == "us" ? 1e3 : unit == "ms" ? 1e6 : unit == "s" ? 1e9 : 0;
  using std::chrono::nanoseconds;
  if (ns == 0 || value * ns < static_cast<double>(nanoseconds(kLeastTarget).count()) ||
      value * ns > static_cast<double>(nanoseconds(kGreatestTarget).count()))
    return std::nullopt;
  return LatencyTarget{.at_most = nanoseconds(static_cast<std::int64_t>(value * ns + 0.5))};
}

}  // namespace gpuctl
