// Streams of the program that may be waiting for something that the GPU does not do by itself: a host function, a value
// in memory, an external semaphore, or a graph, which may hold any of these. What they wait for may be the very thread
// that asks.
//
// Noting one costs a short lock and no driver call. Whether they still wait is asked when somebody wants to know.
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

  /// While it lives the calling thread puts something that may wait into the stream; from then on the stream counts as
  /// waiting. `stream` is never null (explicit_stream()). The context must be current.
  class Putting {
   public:
    Putting(WaitingStreams& all, CUstream stream);
    ~Putting();
    Putting(const Putting&) = delete;
    Putting& operator=(const Putting&) = delete;

   private:
    WaitingStreams& all_;
    CUcontext context_ = nullptr;
    StreamKey key_;
  };

  /// No stream is known to wait. Asks the driver, with a call that does not block, and forgets those that are done.
  /// Default streams can be asked for in their own context alone, per-thread ones in their own thread: others count as
  /// waiting.
  bool none();

  /// The program is about to destroy the stream. If it is not done, it counts as waiting as long as its context is
  /// there.
  void destroyed(CUstream stream);
  void forget(CUcontext context);

  /// In a forked child.
  void forget_after_fork();

 private:
  struct One {
    CUcontext context;
    StreamKey key;      ///< handle null: of a stream that was destroyed
    unsigned putting;   ///< threads that put something into it now
    std::uint64_t put;  ///< counts those that did

    bool is(CUcontext other, const StreamKey& stream) const { return context == other && key == stream; }
  };
  static bool done(const One& one);

  /// Held over questions to the driver, so that nobody destroys the stream meanwhile; first of the two.
  std::mutex asking_;
  std::mutex mutex_;  ///< guards streams_; held over no driver call
  std::vector<One> streams_;
};

}  // namespace gpuslice
