// How long a thread of the program waits, outside of the driver, for what the program's streams do.
//
// They may wait for this very thread: a stream that waits for a value which the thread is about to write, a kernel that
// polls a word of the host's memory. So a thread that has waited in vain goes on, and does what it would do without us.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpuslice {

/// One wait of one thread.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  /// Long: a program may be a dozen long kernels ahead.
  static constexpr std::chrono::seconds kWhileItRuns{10};
  /// Where a stream may wait for the program (waiting_streams.h), and nothing runs that it could be behind.
  static constexpr std::chrono::milliseconds kWhileItMayWait{200};

  /// How long nothing gets on before it is over.
  struct Limits {
    Clock::duration while_it_runs = kWhileItRuns, while_it_may_wait = kWhileItMayWait;
  };

  explicit Patience(Clock::time_point now = Clock::now()) : Patience(Limits{}, now) {}
  explicit Patience(Limits limits, Clock::time_point now = Clock::now()) : limits_(limits), since_(now) {}

  /// Called each time the thread looks. `progress` changes whenever something gets on, which renews the patience.
  /// `runs`: something is on the GPU. `may_wait()`: whether a stream may wait for the program.
  template <class MayWait>
  bool is_over(std::uint64_t progress, bool runs, MayWait may_wait, Clock::time_point now = Clock::now()) {
    if (progress != progress_) {
      progress_ = progress;
      since_ = now;
    }
    if (now - since_ >= limits_.while_it_runs) return true;
    return !runs && now - since_ >= limits_.while_it_may_wait && may_wait();
  }

 private:
  Limits limits_;
  Clock::time_point since_;
  std::uint64_t progress_ = 0;
};

}  // namespace gpuslice
