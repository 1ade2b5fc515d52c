// A hardware queue: streams that share one begin their operations in the order in which they were submitted, so one
// that waits for another stream holds up those behind it, whosever they are.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace gpuctl::softgpu {

class WorkQueue {
 public:
  /// The place of an operation that is being submitted.
  std::uint64_t issue() {
    const std::lock_guard lock(mutex_);
    return issued_++;
  }

  /// Waits until all before it have begun, and begins.
  void begin(std::uint64_t place) {
    std::unique_lock lock(mutex_);
    turn_changed_.wait(lock, [&] { return turn_ == place; });
    ++turn_;
    turn_changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  std::uint64_t issued_ = 0, turn_ = 0;
};

}  // namespace gpuctl::softgpu
