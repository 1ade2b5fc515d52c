// The host's clock minus the GPU's, computed from launches alone. No launch starts before it is issued, and none is
// seen complete before it is.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

/// One thread at a time. Times in nanoseconds: `issued`, `seen` and `now` are CLOCK_MONOTONIC, `start` and `done`
/// %globaltimer.
class ClockOffset {
 public:
  /// Adds a launch with the times at which it was issued, started, was done, and was seen to be done. The clocks drift
  /// apart, so a launch counts for one to two seconds.
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

  /// `at_once` is nearly exact if some launch started as soon as it was issued. If none did, because many wait, it lies
  /// further below `most` than one nap of the agent explains. Then `most` is used: each look comes at another point of
  /// a nap, so the best of many is off by little.
  std::int64_t ns() const {
    const std::int64_t most = std::min(latest_.most, before_.most);
    const std::int64_t at_once = std::max(latest_.least, before_.least) + kLaunchNs;
    if (at_once >= most - kLookNs) return std::min(most, at_once);
    return most - kLookNs / (latest_.launches + before_.launches + 1);
  }

 private:
  static constexpr std::uint64_t kWindowNs = 1'000'000'000;
  static constexpr std::int64_t kLaunchNs = 5'000;  ///< from the issue of a launch to its start on an idle GPU
  /// The agent's naps are at most this long while launches are outstanding.
  static constexpr std::int64_t kLookNs = 1'000'000;

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
