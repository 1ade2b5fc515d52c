#include "gpuctl/text/instant.h"

#include <time.h>

#include <array>
#include <string_view>
#include <utility>

#include "gpuctl/text/units.h"

namespace gpuctl::cli {

namespace {

std::optional<std::int64_t> before(std::string_view text, std::int64_t now_s) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> kUnits{
      {{"min", 60}, {"h", 3600}, {"d", 86400}, {"s", 1}}};
  for (const auto& [unit, seconds] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto count = parse_integer(text.substr(0, text.size() - unit.size()));
    if (!count || *count < 0 || *count > now_s / seconds) return std::nullopt;
    return now_s - *count * seconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> parse_instant(const std::string& text, std::int64_t now_s) {
  if (const auto ago = before(text, now_s)) return ago;
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"}) {
    std::tm local{};
    local.tm_isdst = -1;
    const char* const end = ::strptime(text.c_str(), format, &local);
    if (end == nullptr || *end != '\0') continue;
    const std::tm said = local;
    const std::int64_t instant = ::mktime(&local);
    if (instant < 0 || local.tm_mday != said.tm_mday) return std::nullopt;  // 2026-02-30
    return instant;
  }
  return std::nullopt;
}

}  // namespace gpuctl::cli
