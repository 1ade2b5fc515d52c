// The in-flight limit: how far a program may be ahead of the GPU in a stream with kernels that cannot be evicted. The
// limit is GPU time, since that is how late a new grant takes effect. If it is too small, the GPU runs dry while the
// program computes (docs/history/programs.md): with 4 ms, training of a language model lost 7 % of its speed. So the
// limit is that small only under a policy for jobs, where each decision waits for it. Elsewhere the GPU's priorities
// serve who waits.
//
// The unit is the mark, an event after every so many launches. Before the launches after a mark, the program waits
// until an earlier mark is reached. This class says which one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpuslice {

/// One thread at a time. Times in nanoseconds of one clock.
class InFlightLimit {
 public:
  static constexpr std::uint32_t kMost = 31;     ///< marks
  static constexpr double kJobsNs = 4'000'000;   ///< under a policy for jobs
  static constexpr double kElseNs = 20'000'000;  ///< a client that arrives needs longer than this to begin

  /// How many marks back the mark is that must be reached: 1 to kMost. The program is ahead by at most that many marks
  /// and the launches before one more. Returns 1 until something is known.
  std::uint32_t marks(bool jobs) const {
    if (mark_ns_ == 0) return 1;
    return static_cast<std::uint32_t>(std::clamp((jobs ? kJobsNs : kElseNs) / mark_ns_ - 1, 1.0, double{kMost}));
  }

  /// `mark`, which counts up, was found to be reached. `waited`: the thread waited for it, so it was reached just now.
  void reached(std::uint64_t mark, bool waited, std::uint64_t now_ns) {
    if (mark <= mark_) return;  // the program was allowed further ahead since
    // All launches up to this mark were made before since_ns_. If the thread did not wait, the GPU took at most this
    // long. So a longer time than expected means nothing: the program may have done something else.
    if (since_ns_ != 0) {
      const double sample = std::max(1.0, static_cast<double>(now_ns - since_ns_) / static_cast<double>(mark - mark_));
      if (mark_ns_ == 0 && waited) mark_ns_ = sample;
      if (waited || sample < mark_ns_) mark_ns_ += (sample - mark_ns_) / 4;
    }
    mark_ = mark;
    since_ns_ = waited ? now_ns : 0;
  }

 private:
  std::uint64_t mark_ = 0;      ///< the latest mark known to be reached ...
  std::uint64_t since_ns_ = 0;  ///< ... and when it was; 0: not known
  double mark_ns_ = 0;          ///< smoothed GPU time from one mark to the next; 0: not known yet
};

}  // namespace gpuslice
