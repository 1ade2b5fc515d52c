// Launches and evictions, as programs count them: each may report any number. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace gpuctl::daemon {

/// Neither is negative.
struct LaunchCounts {
  std::int64_t launches = 0, evictions = 0;

  /// What is too much for a number is the greatest.
  LaunchCounts& operator+=(const LaunchCounts& more) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    launches = more.launches > most - launches ? most : launches + more.launches;
    evictions = more.evictions > most - evictions ? most : evictions + more.evictions;
    return *this;
  }

  /// What came after `before`.
  LaunchCounts since(const LaunchCounts& before) const {
    return {std::max<std::int64_t>(launches - before.launches, 0),
            std::max<std::int64_t>(evictions - before.evictions, 0)};
  }
};

}  // namespace gpuctl::daemon
