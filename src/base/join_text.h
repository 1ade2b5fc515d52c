// Whom a list names, as people write it: "user:1000,unit:ollama.service,cgroup:/ml.slice". So are written whose
// programs join a slice although they name none, and for whom the library is mandatory.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/parts.h"

namespace gpuctl {

/// The text of a setting by which none does.
inline constexpr std::string_view kNobodyJoins = "none";

/// What such a value must look like, for errors.
inline constexpr std::string_view kJoinForm =
    "none, or a list such as user:1000,unit:ollama.service,cgroup:/ml.slice, each once";

/// Where a list may name all users: "user:*". Numbers end before this one.
inline constexpr std::string_view kEveryUser = "*";
inline constexpr std::uint32_t kEveryUserId = UINT32_MAX;

struct Join {
  /// A user before a group, those of cgroups before both, and the program itself before all.
  enum class By { unit, cgroup, user, group, exe };
  By by = By::unit;
  std::string text;      ///< of a user or group a number
  std::uint32_t id = 0;  ///< that number
  bool operator==(const Join&) const = default;
};

inline constexpr std::size_t kMostJoins = 64;
inline constexpr std::size_t kMostJoinText = 255;  ///< systemd's own limit of a unit's name

/// The words before the colons, in the order of Join::By.
inline constexpr std::string_view kJoinWords[] = {"unit", "cgroup", "user", "group", "exe"};

/// Whether a unit, a cgroup or a program may be written so.
inline bool is_join_text(std::string_view text) {
  return text.size() <= kMostJoinText &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '"'; });
}

/// Whether it names a file from the root on, as the kernel would: without "." and "..".
inline bool is_full_path(std::string_view text) {
  if (!is_join_text(text) || !text.starts_with('/')) return false;
  const std::string whole = std::string(text) + '/';
  return std::ranges::none_of(std::array{"//", "/./", "/../"},
                              [&](const char* part) { return whole.find(part) != whole.npos; });
}

/// Empty unless the text is kJoinForm. Names of users and groups are numbers here: who reads what people write looks
/// them up. `mandatory`: it says for whom the library is: kEveryUser is a user too, and no program is named.
inline std::optional<std::vector<Join>> parse_join(std::string_view text, bool mandatory = false) {
  std::vector<Join> joins;
  if (text == kNobodyJoins) return joins;
  const bool sound = each_part(text, [&](std::string_view part) {
    const std::size_t colon = std::min(part.find(':'), part.size());
    const auto word = std::ranges::find(kJoinWords, part.substr(0, colon));
    if (word == std::end(kJoinWords) || colon + 1 >= part.size()) return false;
    Join join{.by = static_cast<Join::By>(word - std::begin(kJoinWords)), .text = std::string(part.substr(colon + 1))};
    if (join.by == Join::By::unit) {
      if (!is_join_text(join.text) || join.text.find('/') != join.text.npos) return false;
    } else if (join.by == Join::By::cgroup) {
      const bool path = join.text.front() == '/' && join.text.back() != '/' && join.text.find("//") == join.text.npos;
      if (!path || !is_join_text(join.text)) return false;
    } else if (join.by == Join::By::exe) {
      if (mandatory || !is_full_path(join.text)) return false;
    } else if (mandatory && join.by == Join::By::user && join.text == kEveryUser) {
      join.id = kEveryUserId;
    } else {
      const char* const end = join.text.data() + join.text.size();
      const auto [last, error] = std::from_chars(join.text.data(), end, join.id);
      if (error != std::errc() || last != end || join.id == kEveryUserId) return false;
      join.text = std::to_string(join.id);
    }
    if (std::ranges::find(joins, join) != joins.end() || joins.size() == kMostJoins) return false;
    joins.push_back(std::move(join));
    return true;
  });
  return sound ? std::optional(std::move(joins)) : std::nullopt;
}

}  // namespace gpuctl
