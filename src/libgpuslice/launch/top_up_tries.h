// When to add workers to a launch that has fewer than it may have. Some added workers land on SMs where they may not
// stay, and the hardware decides how many. So while more than a few are missing, the agent tries again, after a pause
// that doubles each time. When the range of SMs changes, the pauses start anew, even if the range was only empty for a
// while. So a launch that is often evicted gets its workers back at once each time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

class TopUpTries {
 public:
  static constexpr std::uint64_t kFirstPauseNs = 200'000;
  static constexpr std::uint64_t kLongestPauseNs = 20'000'000;

  /// Called at each look. `range`: the SMs that the launch may use (gpuctl::pack_range). Returns the previous range, at
  /// first 0.
  std::uint32_t allow(std::uint32_t range) {
    const std::uint32_t before = range_;
    if (range != before) next_ns_ = 0;
    range_ = range;
    return before;
  }
  /// The earliest time of the next try; 0: now.
  std::uint64_t next_ns() const { return next_ns_; }
  void tried(std::uint64_t now_ns) {
    pause_ns_ = next_ns_ == 0 ? kFirstPauseNs : std::min(2 * pause_ns_, kLongestPauseNs);
    next_ns_ = now_ns + pause_ns_;
  }

 private:
  std::uint32_t range_ = 0;
  std::uint64_t next_ns_ = 0, pause_ns_ = 0;
};

}  // namespace gpuslice
