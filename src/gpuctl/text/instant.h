// Instants as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpuctl::cli {

/// "30min", "12h", "7d" before `now`; or a day or a time where the user is: "2026-11-28", "2026-11-28 10:15". Seconds
/// since the epoch, and never before it.
std::optional<std::int64_t> parse_instant(const std::string& text, std::int64_t now_s);

}  // namespace gpuctl::cli
