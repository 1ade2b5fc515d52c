// Amounts as people read and write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuctl::cli {

/// A whole decimal number and nothing else; no plus sign.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// A positive decimal number such as "0.5" or "2".
std::optional<double> parse_seconds(std::string_view text);

/// "100ms", "2s", "1.5s" in milliseconds, if it is a whole number of them.
std::optional<std::int64_t> parse_milliseconds(std::string_view text);

std::string format_bytes(std::int64_t bytes);         ///< "1.5 GiB", "139 GiB", "512 B"
std::string format_us(double us);                     ///< "0.5 us", "62 us", "1.25 ms", "3.5 s"
std::string format_rate(double per_second);           ///< "0", "0.3", "412", "12.4k"
std::string format_count(std::int64_t count);         ///< "999", "12.4k", "3.1M"
std::string format_duration_s(std::int64_t seconds);  ///< "12 s", "5 min 3 s", "2 h 5 min", "3 d 4 h"

}  // namespace gpuctl::cli
