// The host's clock minus the GPU's, from launches alone: none starts before it is issued, and none is seen complete
// before it is.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

/// One thread at a time. Times in nanoseconds: `issued`, `seen` and `now` are CLOCK_MONOTONIC, `start` and `done`
/// %globaltimer.
class ClockOffset {
 public:
  /// A launch that was issued, started, was done, and was seen to be now. The clocks drift apart, so it counts for a
  /// second or two.
  void add(std::uint64_t issued, std::uint64_t start, std::uint64_t done, std::uint64_t now) {
    if (now - latest_.began_ns > kWindowNs) {
      before_ = latest_;
      latest_ = {.began_ns = now};
    }
    latest_.least = std::max(latest_.least, difference(issued, start));
    latest_.most = std::min(latest_.most, difference(now, done));
    ++latest_.launches;
  }

  bool known() const { return latest_.launches + before_.launches > 0; }

  /// The first bound is nearly tight where a launch started at once. Where none did, as many wait, it is further from
  /// the second than a nap of who looks can explain: then the second, from which each look differs by another part of a
  /// nap, the best of many by little.
  std::int64_t ns() const {
    const std::int64_t most = std::min(latest_.most, before_.most);
    const std::int64_t at_once = std::max(latest_.least, before_.least) + kLaunchNs;
    if (at_once >= most - kLookNs) return std::min(most, at_once);
    return most - kLookNs / (latest_.launches + before_.launches + 1);
  }

 private:
  static constexpr std::uint64_t kWindowNs = 1'000'000'000;
  static constexpr std::int64_t kLaunchNs = 5'000;    ///< from the issue of a launch to its start on an idle GPU
  static constexpr std::int64_t kLookNs = 1'000'000;  ///< the agent's naps are no longer while launches are outstanding

  static std::int64_t difference(std::uint64_t host, std::uint64_t gpu) {
    return static_cast<std::int64_t>(host) - static_cast<std::int64_t>(gpu);
  }

  struct Window {
    std::uint64_t began_ns = 0;
    std::int64_t least = INT64_MIN / 2, most = INT64_MAX;
    std::int64_t launches = 0;
  };
  Window latest_, before_;
};

}  // namespace gpuslice
