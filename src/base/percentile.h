// The definition of "percentile" for values that are all at hand. For a histogram it can only be estimated
// (gpuctl/views/top_model.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace gpuctl {

/// Nearest rank: the least value v such that at least `share` (0 to 1) of all values are at most v; 0 for no values.
inline double percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace gpuctl
