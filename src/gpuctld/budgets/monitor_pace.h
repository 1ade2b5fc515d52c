// How often a monitor is answered: as often as it asks, unless making the answers of all monitors would then take more
// than a twentieth of a core. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace gpuctl::daemon {

inline constexpr int kMonitorsPartOfCore = 20;  ///< one in so many
inline constexpr std::chrono::milliseconds kSlowestMonitor{60'000};

/// `took`: making the latest answer. `monitors`: how many there are, this one included.
inline std::chrono::milliseconds monitor_pace(std::chrono::milliseconds asked, std::chrono::nanoseconds took,
                                              std::size_t monitors) {
  const auto fair = std::chrono::ceil<std::chrono::milliseconds>(
      took * kMonitorsPartOfCore * static_cast<std::int64_t>(std::max<std::size_t>(monitors, 1)));
  return std::clamp(fair, asked, std::max(asked, kSlowestMonitor));
}

}  // namespace gpuctl::daemon
