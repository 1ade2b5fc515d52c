// Counts what touches the program's memory now: blocks of kernels, copies, memory operations of streams.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace gpuctl::softgpu {

/// Any thread.
class Activity {
 public:
  /// While one exists, wait_until_idle() waits. Code that makes one must check afterwards whether it may still begin.
  class Scope {
   public:
    explicit Scope(Activity& activity) : activity_(activity) { activity_.scopes_.fetch_add(1); }
    ~Scope() { activity_.scopes_.fetch_sub(1); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Activity& activity_;
  };

  /// Returns once nothing is going on, or after `limit`.
  void wait_until_idle(std::chrono::milliseconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (scopes_.load() != 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  std::atomic<int> scopes_{0};
};

}  // namespace gpuctl::softgpu
