#include "gpuctl/text/suggest.h"

#include <algorithm>

namespace gpuctl::cli {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return cost[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = i + j;
        continue;
      }
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return cost.back();
}

std::optional<std::string> closest(std::string_view wrong, const std::vector<std::string>& names) {
  if (wrong.size() > 200) return std::nullopt;
  std::optional<std::string> best;
  // "prio" for "priority": only if it begins exactly one name.
  if (wrong.size() >= 2) {
    const auto begins = [&](const std::string& name) { return name.starts_with(wrong); };
    if (std::count_if(names.begin(), names.end(), begins) == 1)
      return *std::find_if(names.begin(), names.end(), begins);
  }
  // With a third of the letters wrong it is still the same word; a name of one or two letters may have one wrong.
  std::size_t limit = std::max<std::size_t>(1, (wrong.size() + 1) / 3);
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(wrong, name);
    if (distance > limit || distance >= std::max(wrong.size(), name.size())) continue;
    if (best && distance == limit) continue;
    best = name;
    limit = distance;
  }
  return best;
}

std::string hint(std::string_view wrong, const std::vector<std::string>& names) {
  constexpr std::size_t kFew = 12;  // this many still read well on one line
  if (const auto name = closest(wrong, names)) return "; did you mean '" + *name + "'?";
  if (names.empty() || names.size() > kFew) return {};
  std::string list = "; known: ";
  for (std::size_t i = 0; i < names.size(); ++i) list += (i == 0 ? "" : ", ") + names[i];
  return list;
}

}  // namespace gpuctl::cli
