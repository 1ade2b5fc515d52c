// When a call that the driver refused is worth another try. The reason may have been of that moment, as a lack of
// memory is, or may last; the answer does not tell. So there are tries after pauses that grow.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

namespace gpuslice {

/// stands(): any thread. The others: one thread at a time. Time is an argument.
class Refusal {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kFirstPause{2}, kLongestPause{64};

  void note(Clock::time_point now) {
    until_.store((now + pause_).time_since_epoch().count(), std::memory_order_relaxed);
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  /// The call succeeded.
  void over() {
    until_.store(0, std::memory_order_relaxed);
    pause_ = kFirstPause;
  }
  /// Whether a try is too early. `now` is called only after a refusal.
  template <class Now = Clock::time_point (*)()>
  bool stands(Now now = &Clock::now) const {
    const Clock::rep until = until_.load(std::memory_order_relaxed);
    return until != 0 && now().time_since_epoch().count() < until;
  }

 private:
  std::atomic<Clock::rep> until_{0};
  std::chrono::seconds pause_ = kFirstPause;
};

}  // namespace gpuslice
