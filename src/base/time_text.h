// Times as people write them, on the command line and in gpuctl.toml: 40ms, 1.5s, 250us.
#pragma once

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace gpuctl {

/// A decimal number and what follows it; empty if it begins with no digit, or is longer than anybody writes.
struct NumberAndUnit {
  double number = 0;
  std::string_view unit;
};
inline std::optional<NumberAndUnit> parse_number_and_unit(std::string_view text) {
  NumberAndUnit parsed;
  if (text.empty() || text[0] < '0' || text[0] > '9' || text.size() > 32) return std::nullopt;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), parsed.number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  parsed.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  return parsed;
}

/// Empty unless it is in us, ms or s, and within the bounds. To the nanosecond.
inline std::optional<std::chrono::nanoseconds> time_of(const NumberAndUnit& parsed, std::chrono::nanoseconds least,
                                                       std::chrono::nanoseconds greatest) {
  const double unit = parsed.unit == "us" ? 1e3 : parsed.unit == "ms" ? 1e6 : parsed.unit == "s" ? 1e9 : 0;
  const double ns = parsed.number * unit;
  if (unit == 0 || ns < static_cast<double>(least.count()) || ns > static_cast<double>(greatest.count()))
    return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ns + 0.5));
}

}  // namespace gpuctl
