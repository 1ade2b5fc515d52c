// When something may be made that the driver makes only while the device is idle: green contexts and their streams.
//
// The driver would wait for as long as that takes, and inside it. But what runs may wait for the program itself: a
// kernel that polls a word of the host's memory, a stream that waits for a value. So the launching thread waits outside
// of the driver and gives up soon; its launch is then not confined. The other threads' launches wait meanwhile, else a
// program with several of them would never be idle.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "libgpuslice/base/patience.h"

namespace gpuslice {

/// Any thread.
class Settling {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Device {
    kIdle,
    kBusy,    ///< something runs there, or may wait for the program
    kBroken,  ///< nothing is managed there any more
  };
  struct Seen {
    Device device;
    std::uint64_t progress = 0;  ///< another one whenever what runs is seen to get on
  };
  /// After a wait in vain nobody waits for this long, each time twice as long as before, up to kLongestPause. Who comes
  /// meanwhile only looks.
  static constexpr std::chrono::seconds kFirstPause{2}, kLongestPause{64};
  /// The longest wait while nothing gets on, where what runs may wait for the program.
  static constexpr std::chrono::seconds kLongestWhileItMayWait{1};

  /// Returns false at once while another thread settles. After true, the caller must call end().
  bool begin() { return !under_way_.exchange(true); }

  // What follows is for the thread that settles, and `now` is for tests.

  /// Whether it is to look only.
  bool pauses(Clock::time_point now = Clock::now()) const { return now < not_before_; }
  /// What its waits are to go by.
  Patience::Limits limits(Clock::time_point now = Clock::now()) const {
    if (pauses(now)) return {.while_it_runs = {}, .while_it_may_wait = {}};
    // First kWhileItMayWait. If that was in vain, long kernels may be what runs.
    return {.while_it_may_wait = std::min<Clock::duration>(pause_ / kWaitsInPause, kLongestWhileItMayWait)};
  }
  /// Waits until `look()`, which must not block, says that the device is idle. Returns false if that takes too long.
  /// `may_wait()`: whether what runs may wait for the program.
  template <class Look, class MayWait>
  bool wait(Look look, MayWait may_wait) const {
    Patience patience(limits());
    for (;;) {
      const Seen seen = look();
      if (seen.device != Device::kBusy) return seen.device == Device::kIdle;
      if (patience.is_over(seen.progress, false, may_wait)) return false;  // what is not confined takes others' SMs
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  void end(bool settled, Clock::time_point now = Clock::now()) {
    if (settled) {
      pause_ = kFirstPause;
      not_before_ = {};
    } else if (now >= not_before_) {
      not_before_ = now + pause_;
      pause_ = std::min<Clock::duration>(2 * pause_, kLongestPause);
    }
    under_way_.store(false);
  }
  bool under_way() const { return under_way_.load(std::memory_order_acquire); }
  /// Waits while another thread settles, and makes what it wanted to make. No longer than that may take: the driver may
  /// be waiting there for what this thread is about to do. `may_wait`: as for Patience.
  template <class MayWait>
  void let_pass(MayWait may_wait) const {
    Clock::time_point since{};
    while (under_way_.load(std::memory_order_relaxed)) {
      const Clock::time_point now = Clock::now();
      if (since == Clock::time_point{}) since = now;
      if (now - since >= 2 * Patience::kWhileItRuns) return;
      if (now - since >= 2 * Patience::kWhileItMayWait && may_wait()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  static constexpr int kWaitsInPause = kFirstPause / Patience::kWhileItMayWait;

  std::atomic<bool> under_way_{false};
  // of the thread that settles
  Clock::time_point not_before_{};
  Clock::duration pause_ = kFirstPause;
};

}  // namespace gpuslice
