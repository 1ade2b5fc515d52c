// How long a client took to leave SMs that were taken from it, as the daemon saw it. What the client says of itself is
// not asked: a deadline that a client could name would be no deadline. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace gpuctl::daemon {

/// For one client on one device.
class LeavingTimes {
 public:
  /// So many of the latest ones count; a program that ran long thread blocks once does not keep their time for ever.
  static constexpr std::size_t kKept = 8;

  /// It was seen to have left `took` after the shrink was written. What took longer than `most` is no time to leave:
  /// it was stopped, or did not obey, and must not get more time for that.
  void note(std::chrono::nanoseconds took, std::chrono::nanoseconds most) {
    if (took > most) return;
    times_[next_] = took;
    next_ = (next_ + 1) % kKept;
  }

  /// The longest; 0: none was seen yet.
  std::chrono::nanoseconds longest() const { return *std::max_element(times_.begin(), times_.end()); }

 private:
  std::array<std::chrono::nanoseconds, kKept> times_{};
  std::size_t next_ = 0;
};

}  // namespace gpuctl::daemon
