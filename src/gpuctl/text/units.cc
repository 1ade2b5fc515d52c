#include "gpuctl/text/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

namespace gpuctl::cli {
namespace {

/// At most three significant digits, no trailing zeros: 1.25, 12.5, 125, 1250.
std::string three_digits(double value) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  std::string result = text;
  if (decimals > 0) {
    result.erase(result.find_last_not_of('0') + 1);
    if (result.back() == '.') result.pop_back();
  }
  return result;
}

std::string scaled(double value) {
  static constexpr std::array<const char*, 5> kPrefixes{"", "k", "M", "G", "T"};
  std::size_t i = 0;
  while (value >= 999.5 && i + 1 < kPrefixes.size()) {
    value /= 1000;
    ++i;
  }
  return three_digits(value) + kPrefixes[i];
}

/// strtod without locale, whitespace, "inf", hex and exponents.
std::optional<double> parse_decimal(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_seconds(std::string_view text) {
  const std::optional<double> seconds = parse_decimal(text);
  return seconds && *seconds > 0 ? seconds : std::nullopt;
}

std::optional<std::int64_t> parse_milliseconds(std::string_view text) {
  constexpr std::int64_t kMost = 1'000'000'000'000;
  if (!text.ends_with('s')) return std::nullopt;
  text.remove_suffix(1);
  const bool milli = text.ends_with('m');
  if (milli) text.remove_suffix(1);
  if (!parse_decimal(text)) return std::nullopt;
  // By digits: no double is 1.001.
  const std::size_t point = std::min(text.find('.'), text.size()), places = milli ? 0 : 3;
  std::string digits(text.substr(0, point)), rest(text.substr(std::min(point + 1, text.size())));
  rest.resize(std::max(rest.size(), places), '0');
  if (rest.find_first_not_of('0', places) != std::string::npos) return std::nullopt;
  const std::optional<std::int64_t> ms = parse_integer(digits + rest.substr(0, places));
  return ms && *ms <= kMost ? ms : std::nullopt;
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t i = 0;
  while (value >= 1023.5 && i + 1 < kUnits.size()) {
    value /= 1024;
    ++i;
  }
  return three_digits(value) + ' ' + kUnits[i];
}

std::string format_us(double us) {
  if (us >= 999'500) return three_digits(us / 1e6) + " s";
  if (us >= 999.5) return three_digits(us / 1e3) + " ms";
  return three_digits(us) + " us";
}

std::string format_rate(double per_second) {
  return per_second > 0 && per_second < 0.01 ? "<0.01" : scaled(per_second);
}

std::string format_count(std::int64_t count) {
  return scaled(static_cast<double>(count));
}

std::string format_duration_s(std::int64_t seconds) {
  const auto two = [](std::int64_t a, const char* unit_a, std::int64_t b, const char* unit_b) {
    return std::to_string(a) + unit_a + (b == 0 ? std::string() : ' ' + std::to_string(b) + unit_b);
  };
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return two(seconds / 60, " min", seconds % 60, " s");
  if (seconds < 86400) return two(seconds / 3600, " h", seconds / 60 % 60, " min");
  return two(seconds / 86400, " d", seconds / 3600 % 24, " h");
}

}  // namespace gpuctl::cli
