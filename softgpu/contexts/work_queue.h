// A hardware queue. Streams that share one begin their operations in the order of submission. So an operation that
// waits for the one before it in its stream delays the operations behind it, of any stream, until it begins. One that
// waits for an event, a value in memory or a host function delays them until it has ended.
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

  /// Waits for the turn of this operation.
  void wait_for_turn(std::uint64_t place) {
    std::unique_lock lock(mutex_);
    turn_changed_.wait(lock, [&] { return turn_ == place; });
  }

  /// The operation whose turn it is holds up nothing any more.
  void pass() {
    const std::lock_guard lock(mutex_);
    ++turn_;
    turn_changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_changed_;
  std::uint64_t issued_ = 0, turn_ = 0;
};

}  // namespace gpuctl::softgpu
