// Streams of the program that may be waiting for something that the GPU does not do by itself: a host function, a value
// in memory, an external semaphore, or a graph, which may contain any of these. They may even wait for the very thread
// that asks here.
//
// Noting a stream costs a short lock and no driver call. The driver is asked whether streams still wait only in none()
// and destroyed().
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "libgpuslice/driver/stream_key.h"

namespace gpuslice {

/// Any thread.
class WaitingStreams {
 public:
  static WaitingStreams& get();

  /// What a stream may wait for.
  enum class Wait {
    kAny,    ///< a host function, or whatever a graph contains
    kValue,  ///< a value in memory or a semaphore, which may come only after other work of the program
  };

  /// While an object of this class lives, the calling thread puts something that may wait into the stream. From then on
  /// the stream counts as waiting. `stream` is never null (explicit_stream()). The context must be current.
  class Putting {
   public:
    Putting(WaitingStreams& all, CUstream stream, Wait wait = Wait::kAny);
    ~Putting();
    Putting(const Putting&) = delete;
    Putting& operator=(const Putting&) = delete;

   private:
    WaitingStreams& all_;
    CUcontext context_ = nullptr;
    StreamKey key_;
  };

  /// Whether no stream is known to wait. Asks the driver, with a call that does not block, and forgets the streams that
  /// are done. A default stream can be queried only in its own context, and a per-thread one only in its own thread;
  /// other default streams count as waiting.
  bool none() { return none_for(Wait::kAny); }
  /// The same of streams that wait for a value.
  bool none_for_a_value() { return none_for(Wait::kValue); }
  /// Whether a stream may wait for a value. Does not ask the driver.
  bool any_for_a_value();

  /// The program is about to destroy the stream. If it is not done, it counts as waiting as long as its context exists.
  void destroyed(CUstream stream);
  void forget(CUcontext context);

  /// In a forked child.
  void forget_after_fork();

 private:
  struct One {
    CUcontext context;
    StreamKey key;      ///< handle null: the stream was destroyed
    unsigned putting;   ///< how many threads are putting something into it now
    std::uint64_t put;  ///< how often something was put into it
    bool for_a_value;

    bool is(CUcontext other, const StreamKey& stream) const { return context == other && key == stream; }
  };
  static bool done(const One& one);
  bool none_for(Wait wait);

  /// Held while the driver is queried, so that no thread destroys the stream meanwhile. Taken before mutex_.
  std::mutex asking_;
  std::mutex mutex_;  ///< guards streams_; not held over driver calls
  std::vector<One> streams_;
};

}  // namespace gpuslice
