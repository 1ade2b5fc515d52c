// When to add workers to a launch that has fewer than it may. Some workers of a top-up land on SMs where they may not
// stay, and how many is up to the hardware; so another try is made, after a pause that doubles, while more than a few
// are missing. Another range of SMs, be it an empty one in between, is another matter: a launch that is evicted often
// and given SMs again gets its workers at once each time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

class TopUpTries {
 public:
  static constexpr std::uint64_t kFirstPauseNs = 200'000;
  static constexpr std::uint64_t kLongestPauseNs = 20'000'000;

  /// At each look: the range of SMs that the launch may use (gpuctl::pack_range). Returns the one before, at first 0.
  std::uint32_t allow(std::uint32_t range) {
    const std::uint32_t before = range_;
    if (range != before) next_ns_ = 0;
    range_ = range;
    return before;
  }
  /// What was missing has come, and is missing again.
  void try_again() { next_ns_ = 0; }
  /// From when on a try may be made.
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
