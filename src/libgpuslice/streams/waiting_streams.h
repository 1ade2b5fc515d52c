// Streams of the program that may be waiting for something that the GPU does not do by itself: a host function, a value
// in memory, an external semaphore, or a graph, which may contain any of these. They may even wait for the very thread
// that asks here.
//
// Noting a stream costs a short lock and no driver call. The driver is asked whether a stream still waits only when
// somebody wants to know. From then on an event stands for what the stream had been given by then: any thread can query
// it, also while streams are captured, after the stream was destroyed or its thread has ended, and a stream that never
// runs dry passes it all the same. Only what goes into a thread's own stream gets its event at once, as no other thread
// could record one there.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "libgpuslice/base/stream_key.h"

namespace gpuslice {

/// Any thread.
class WaitingStreams {
  struct One;

 public:
  static WaitingStreams& get();

  /// What a stream may wait for.
  enum class Wait {
    kAny,    ///< a host function, or whatever a graph contains
    kValue,  ///< a value in memory or a semaphore, which may come only after other work of the program
  };

  /// While an object of this class lives, the calling thread puts something that may wait into the stream. From then on
  /// the stream counts as waiting. `stream` is never null (explicit_stream()), and is not captured.
  class Putting {
   public:
    Putting(WaitingStreams& all, CUstream stream, Wait wait = Wait::kAny);
    ~Putting();
    Putting(const Putting&) = delete;
    Putting& operator=(const Putting&) = delete;

   private:
    WaitingStreams& all_;
    std::shared_ptr<One> one_;
  };

  /// Whether no stream is known to wait. Asks the driver, with calls that do not block and that no capture forbids, and
  /// forgets the streams that have got past what they waited for. One that has no event yet cannot be asked while
  /// streams are captured, and counts as waiting.
  bool none() { return none_for(Wait::kAny); }
  /// The same of streams that wait for a value.
  bool none_for_a_value() { return none_for(Wait::kValue); }
  /// Whether a stream may wait for a value. Does not ask the driver.
  bool any_for_a_value();

  /// A capture of the stream is about to begin, during which it cannot be asked.
  void capture_begins(CUstream stream) { leave(stream, false); }
  /// The program is about to destroy the stream.
  void destroyed(CUstream stream) { leave(stream, true); }
  void forget(CUcontext context);

  /// In a forked child.
  void forget_after_fork();

 private:
  struct One {
    CUcontext context;
    StreamKey key;          ///< of a thread's own stream, with a number of that thread; handle null: destroyed
    unsigned putting = 0;   ///< how many threads are putting something into it now
    std::uint64_t put = 0;  ///< number of what was put into it last
    bool for_a_value = false;
    CUevent event = nullptr;   ///< guarded by asking_
    std::uint64_t marked = 0;  ///< the event stands for all up to this one; guarded by asking_
  };

  std::vector<std::shared_ptr<One>> copy();
  bool none_for(Wait wait);
  void leave(CUstream stream, bool for_ever);
  bool passed(One& one, std::uint64_t put);
  bool passed_or_mark(One& one, std::uint64_t put);
  void mark(One& one, std::uint64_t put);
  bool drop(const std::shared_ptr<One>& one, std::uint64_t put);

  /// Held while the driver is asked, so that no thread destroys the stream meanwhile. Taken before mutex_.
  std::mutex asking_;
  std::vector<std::pair<CUcontext, CUevent>> spare_;  ///< guarded by asking_
  std::mutex mutex_;                                  ///< guards what follows; not held over driver calls
  std::vector<std::shared_ptr<One>> streams_;
  std::uint64_t puts_ = 0;
};

}  // namespace gpuslice
