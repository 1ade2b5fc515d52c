// Limits as people write them, on the command line and in gpuctl.toml: none, 4096, 512M, 1.5GiB.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace gpuctl {

/// Whether the text removes a limit. 0 does not: it is the least limit.
inline bool lifts_limit(std::string_view text) {
  return text == "none" || text == "unlimited";
}

/// Bytes: a whole number of them, or a decimal number with K, M, G or T, which count by 1024; "B" or "iB" may follow.
inline std::optional<std::int64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, digits);
  std::string_view unit = text.substr(digits);
  const auto read = [&](auto value) -> std::optional<decltype(value)> {
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
    return value;
  };
  if (unit.empty() || unit == "B") return read(std::int64_t{});
  const std::size_t power = kUnits.find(static_cast<char>(unit[0] & ~0x20));
  if (power == std::string_view::npos) return std::nullopt;
  unit.remove_prefix(1);
  if (!unit.empty() && unit != "B" && unit != "iB") return std::nullopt;
  const std::optional<double> value = read(double{});
  const double factor = std::ldexp(1.0, 10 * (static_cast<int>(power) + 1));
  // Doubles above 2^63 do not fit. Below it the product of a short decimal and a power of two is exact enough.
  if (!value || *value * factor >= 9.2e18) return std::nullopt;
  return std::llround(*value * factor);
}

/// The shortest text that parse_size reads as so many bytes: "4G", "1536M", "1000".
inline std::string size_text(std::int64_t bytes) {
  constexpr std::string_view kUnits = "KMGT";
  std::size_t power = 0;
  while (bytes != 0 && bytes % 1024 == 0 && power < kUnits.size()) bytes /= 1024, ++power;
  return std::to_string(bytes) + std::string(kUnits.substr(power == 0 ? 0 : power - 1, power == 0 ? 0 : 1));
}

}  // namespace gpuctl
