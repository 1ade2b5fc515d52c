// A lock for a few instructions that call nothing: one locked instruction, where std::mutex takes 60 instructions, two
// of them locked. Who finds it taken sleeps soon: the thread that holds it may need this processor to go on.
#pragma once

#include <atomic>
#include <ctime>

#include "libgpuslice/base/nothrow.h"

namespace gpuslice {

class ShortLock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]] wait();
  }
  bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  [[gnu::noinline]] void wait() const {
    constexpr int kLooks = 100;
    constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 1000};
    for (int i = 0; i < kLooks; ++i)
      if (!taken_.load(std::memory_order_relaxed)) return;
    const NotCancelled whole;
    nanosleep(&kPause, nullptr);
  }

  std::atomic<bool> taken_{false};
};

}  // namespace gpuslice
