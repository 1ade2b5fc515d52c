// The in-flight limit: how far a program may be ahead of the GPU in a stream with kernels that cannot be evicted. The
// limit is GPU time, since that is how late a new grant takes effect. If it is too small, the GPU runs dry while the
// program computes (docs/history/programs.md): with 4 ms, training of a language model lost 7 % of its speed. So it
// depends on what may happen to the grant:
// - under a policy for jobs each decision waits for it, so it is small;
// - where the grant may shrink at any time it is larger, and the GPU's priorities serve who waits;
// - where the grant is settled (ipc::kSettled) nobody waits for it, so it is as long as the administrator says.
//
// The unit is the mark, an event after every so many launches. Before the launches after a mark, the program waits
// until an earlier mark is reached. This class says which one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gpuslice {

/// How far ahead a program may be now.
struct Ahead {
  std::chrono::nanoseconds most;
  bool prompt = false;  ///< launches that get longer count at once: one that is long for once holds the program up
};

inline constexpr std::chrono::milliseconds kAheadUnderJobs{4};
/// A client that arrives needs longer than this to begin.
inline constexpr std::chrono::milliseconds kAheadElse{20};

/// `jobs`: a policy for jobs is in force. `settled`: for a grant that is settled, what the daemon allows; 0: it is not.
constexpr Ahead ahead_for(bool jobs, std::chrono::nanoseconds settled) {
  if (jobs) return {.most = kAheadUnderJobs, .prompt = true};
  return {.most = settled.count() > 0 ? settled : kAheadElse};
}

/// One thread at a time. Times in nanoseconds of one clock.
class InFlightLimit {
 public:
  static constexpr std::uint32_t kMost = 63;  ///< marks
  /// The long-term mean is that of about so many marks: a training step has some sixty, and they differ by far.
  static constexpr double kLongTerm = 64;

  /// How many marks back the mark is that must be reached: 1 to kMost. The program is ahead by at most that many marks
  /// and the launches before one more. Returns 1 until something is known.
  std::uint32_t marks(Ahead ahead) const {
    const double mark_ns = ahead.prompt ? latest_ns_ : mean_ns_;
    if (mark_ns == 0) return 1;
    return static_cast<std::uint32_t>(
        std::clamp(static_cast<double>(ahead.most.count()) / mark_ns - 1, 1.0, double{kMost}));
  }

  /// `mark`, which counts up, was found to be reached. `waited`: the thread waited for it, so it was reached just now.
  void reached(std::uint64_t mark, bool waited, std::uint64_t now_ns) {
    if (mark <= mark_) return;  // the program was allowed further ahead since
    // All launches up to this mark were made before since_ns_. If the thread did not wait, the GPU took at most this
    // long. So a longer time than expected means nothing: the program may have done something else.
    if (since_ns_ != 0) {
      const auto marks = static_cast<double>(mark - mark_);
      const double sample = std::max(1.0, static_cast<double>(now_ns - since_ns_) / marks);
      if (waited || (mean_ns_ != 0 && sample < mean_ns_)) {
        seen_ = std::min(seen_ + marks, kLongTerm);
        mean_ns_ += (sample - mean_ns_) * std::min(1.0, marks / seen_);
      }
      if (waited && latest_ns_ == 0) latest_ns_ = sample;
      if (waited || sample < latest_ns_) latest_ns_ += (sample - latest_ns_) / 4;
    }
    mark_ = mark;
    since_ns_ = waited ? now_ns : 0;
  }

 private:
  std::uint64_t mark_ = 0;      ///< the latest mark known to be reached ...
  std::uint64_t since_ns_ = 0;  ///< ... and when it was; 0: not known
  // GPU time from one mark to the next; 0: not known yet
  double mean_ns_ = 0;    ///< over the long term
  double latest_ns_ = 0;  ///< of the latest few
  double seen_ = 0;       ///< marks that the long-term mean is of, at most kLongTerm
};

}  // namespace gpuslice
