// "did you mean": finds the closest of the known names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuctl::cli {

/// The number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The name nearest to `wrong`, if it is near enough to be a typing error.
std::optional<std::string> closest(std::string_view wrong, const std::vector<std::string>& names);

/// "; did you mean 'ls'?", else "; known: a, b, c" if there are few names, else nothing.
std::string hint(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace gpuctl::cli
