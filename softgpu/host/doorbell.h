// Wakes stream threads that poll a memory word (cuStreamWaitValue32) when the word has probably changed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace gpuctl::softgpu {

/// One for the process. It rings after each kernel, written value and copy. A word that anything else changes (the CPU,
/// a block of a running kernel, another process) is found by checking again after `timeout`.
class Doorbell {
 public:
  void ring() {
    {
      const std::lock_guard lock(mutex_);
      ++rung_;
    }
    changed_.notify_all();
  }

  std::uint64_t count() const {
    const std::lock_guard lock(mutex_);
    return rung_;
  }

  /// Returns when the bell has rung since `count` was read, or after `timeout`.
  void wait(std::uint64_t count, std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return rung_ != count; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t rung_ = 0;
};

}  // namespace gpuctl::softgpu
