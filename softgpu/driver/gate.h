// What a thread of the program passes on its way into the driver. It is closed while the process is locked
// (cuCheckpointProcessLock): then calls wait until it opens, and those that are inside end first.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace gpuctl::softgpu {

/// Any thread.
class Gate {
 public:
  /// A call that is inside. Calls within a call pass at once.
  class Inside {
   public:
    /// Waits while the gate is closed, as long as `waits()`.
    template <class Waits>
    Inside(Gate& gate, Waits waits) : gate_(gate) {
      if (depth()++ > 0) return;
      for (gate_.inside_.fetch_add(1); gate_.closed_.load() && waits(); gate_.inside_.fetch_add(1)) {
        gate_.inside_.fetch_sub(1);
        while (gate_.closed_.load() && waits()) std::this_thread::sleep_for(kLook);
      }
    }
    ~Inside() {
      if (--depth() == 0) gate_.inside_.fetch_sub(1);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    static int& depth() {
      static thread_local int depth = 0;
      return depth;
    }
    Gate& gate_;
  };

  void close() { closed_.store(true); }
  void open() { closed_.store(false); }
  /// No call is inside.
  bool empty() const { return inside_.load() == 0; }

  static constexpr std::chrono::milliseconds kLook{1};

 private:
  std::atomic<bool> closed_{false};
  std::atomic<int> inside_{0};
};

}  // namespace gpuctl::softgpu
