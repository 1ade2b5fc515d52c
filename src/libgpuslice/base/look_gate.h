// Calls that look at what the GPU has done, such as cuEventQuery. While the driver has a process locked for a
// checkpoint (agent/swap.h), all other calls that need the GPU wait within the driver. These go on, and read marks in
// memory that is away once the checkpoint is made: the program dies of it
// (bench/results/checkpoint-calls-h200-2026-11-29.txt). So they wait here.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "libgpuslice/base/own_threads.h"

namespace gpuslice {

/// Any thread.
class LookGate {
 public:
  /// The one of this process.
  static LookGate& get() { return instance_; }

  /// A look is made as long as this lives. It begins when the gate is open.
  class Inside {
   public:
    Inside() : made_(get().enter()) {}
    ~Inside() {
      if (made_) get().inside_.fetch_sub(1, std::memory_order_release);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    /// False: the gate is closed and the process ends. The driver is not to be called.
    explicit operator bool() const { return made_; }

   private:
    const bool made_;
  };

  void close() { closed_.store(true); }
  void open() { closed_.store(false); }
  /// The memory is lost: it opens no more.
  void close_for_good() { for_good_.store(true); }
  /// It is closed, and opens again.
  bool will_open() const { return closed_.load() && !for_good_.load(); }
  /// No look is being made. While the gate is closed it stays so.
  bool empty() const { return inside_.load() == 0; }
  void forget_after_fork() {
    inside_.store(0);
    for_good_.store(false);
    open();
  }

  static constexpr std::chrono::milliseconds kPause{1};

 private:
  static LookGate instance_;

  bool enter() {
    for (;;) {
      inside_.fetch_add(1);
      if (!closed_.load()) [[likely]]
        return true;
      inside_.fetch_sub(1);
      if (own_calls_are_over()) return false;
      std::this_thread::sleep_for(kPause);
    }
  }

  std::atomic<int> inside_{0};
  std::atomic<bool> closed_{false}, for_good_{false};
};

inline constinit LookGate LookGate::instance_;

/// Makes the look, when that is possible.
template <class Call>
CUresult make_look(const Call& call) {
  const LookGate::Inside inside;
  return inside ? call() : CUDA_ERROR_DEINITIALIZED;
}

}  // namespace gpuslice
