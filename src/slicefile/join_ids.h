// What a list of who joins a slice means on this machine: numbers of users and groups by their names, and links.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuctl::slicefile {

/// Empty if there is no such one on this machine.
std::optional<std::int64_t> user_id(const std::string& name);
std::optional<std::int64_t> group_id(const std::string& name);

/// The list of who joins a slice, base/join_text.h, with numbers in place of the names of users and groups. `problem`:
/// what is wrong with it, for a person; else it stays as it is. `mandatory`: as of parse_join.
std::string join_by_ids(std::string_view text, std::string& problem, bool mandatory = false);

/// A line for each exe of such a list that leads to another file on this machine, as far as this process sees it: a
/// program says which file it runs, and never a link to it.
std::vector<std::string> linked_exes(std::string_view text);

}  // namespace gpuctl::slicefile
