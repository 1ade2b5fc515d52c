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
    kRuns,     ///< something runs: a long kernel most likely, else one that polls the host's memory
    kMayWait,  ///< a stream may wait for the program (waiting_streams.h)
    kBroken,   ///< nothing is managed there any more
  };
  /// After a wait in vain nobody waits for this long, each time twice as long as before, up to kLongestPause.
  static constexpr std::chrono::seconds kFirstPause{2}, kLongestPause{64};

  /// Returns false at once while another thread settles, and in the pause after a wait in vain. After true, the caller
  /// must call end().
  bool begin() {
    if (Clock::now().time_since_epoch().count() < not_before_.load()) return false;
    return !under_way_.exchange(true);
  }
  /// Waits until `look()`, which must not block, says that the device is idle. Returns false if that takes too long.
  template <class Look>
  static bool wait(Look look) {
    const Clock::time_point since = Clock::now();
    for (;;) {
      const Device now = look();
      if (now == Device::kIdle || now == Device::kBroken) return now == Device::kIdle;
      const Clock::duration waited = Clock::now() - since;
      if (waited >= Patience::kWhileItRuns) return false;  // what is not confined takes the SMs of others
      if (now == Device::kMayWait && waited >= Patience::kWhileItMayWait) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  void end(bool settled) {
    if (settled) {
      pause_ = kFirstPause;
    } else {
      not_before_.store((Clock::now() + pause_).time_since_epoch().count());
      pause_ = std::min(2 * pause_, kLongestPause);
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
  std::atomic<bool> under_way_{false};
  std::atomic<Clock::rep> not_before_{0};
  std::chrono::seconds pause_ = kFirstPause;  ///< of the thread that settles
};

}  // namespace gpuslice
