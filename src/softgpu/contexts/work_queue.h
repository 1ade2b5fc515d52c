// A hardware queue. Streams that share one begin their operations in the order of submission, so an operation that
// waits for another stream delays the operations behind it, of any stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace gpuctl::softgpu {

class WorkQueue {
 public:
  /// Takes a place for an operation that is being submitted.
  std::uint64_t issue() {
    const std::lock_guard lock(mutex_);
    return issued_++;
  }

  /// Waits until all operations before it have begun, then begins.
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
