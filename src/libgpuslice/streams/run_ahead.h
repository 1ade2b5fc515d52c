// How far a program may be ahead of the GPU in a stream with kernels that cannot be evicted: by GPU time, since that is
// how late a new grant takes effect. Too little, and the GPU runs dry while the program computes: a training loop that
// was let 16 to 32 launches ahead took 1.026 of its time, with 64 and more 1.000 (docs/measurements.md).
//
// The unit is the mark, an event behind every so many launches. Before the launches behind a mark the program waits
// until an earlier mark is reached; which one, this says.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

/// One thread at a time. Times in nanoseconds of one clock.
class RunAhead {
 public:
  static constexpr std::uint32_t kMost = 15;  ///< marks
  static constexpr double kInCompanyNs = 4'000'000;
  static constexpr double kAloneNs = 20'000'000;  ///< who comes needs longer than that to begin

  /// How many marks ago the one is that has to be reached: 1 to kMost. So many and the launches before one more are
  /// what a program is ahead at most. Until something is known, 1.
  std::uint32_t marks(bool alone) const {
    if (mark_ns_ == 0) return 1;
    return static_cast<std::uint32_t>(std::clamp((alone ? kAloneNs : kInCompanyNs) / mark_ns_ - 1, 1.0, double{kMost}));
  }

  /// `mark`, which counts up, was found reached. `waited`: it was not at first, so it is now that it was.
  void reached(std::uint64_t mark, bool waited, std::uint64_t now_ns) {
    if (mark <= mark_) return;  // the program was let further ahead meanwhile
    // All up to this mark was launched before since_ns_. If nobody waited the GPU took this long at most, so more than
    // expected means nothing: the program may have done something else meanwhile.
    if (since_ns_ != 0) {
      const double sample = std::max(1.0, static_cast<double>(now_ns - since_ns_) / static_cast<double>(mark - mark_));
      if (mark_ns_ == 0 && waited) mark_ns_ = sample;
      if (waited || sample < mark_ns_) mark_ns_ += (sample - mark_ns_) / 4;
    }
    mark_ = mark;
    since_ns_ = waited ? now_ns : 0;
  }

 private:
  std::uint64_t mark_ = 0;      ///< the latest known to be reached ...
  std::uint64_t since_ns_ = 0;  ///< ... when; 0: that is not known
  double mark_ns_ = 0;          ///< the GPU takes from one mark to the next, smoothed; 0: not known yet
};

}  // namespace gpuslice
