// Numbers of users and groups by their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuctl::slicefile {

/// Empty if there is no such one on this machine.
std::optional<std::int64_t> user_id(const std::string& name);
std::optional<std::int64_t> group_id(const std::string& name);

/// The list of who joins a slice, base/join_text.h, with numbers in place of the names of users and groups. `problem`:
/// what is wrong with it, for a person; else it stays as it is. `mandatory`: as of parse_join.
std::string join_by_ids(std::string_view text, std::string& problem, bool mandatory = false);

}  // namespace gpuctl::slicefile
