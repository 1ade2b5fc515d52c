// Confined launches and the program's streams: the program's stream waits for the confined one only when something
// could see the difference.
//
// A confined launch goes to a stream of a green context (opaque.h). It must come after what the program put into its
// own stream before, and before what the program puts there later. That takes an event each way, which costs the GPU
// more than a short kernel does. But mostly the next thing in the stream is another such launch, and the confined
// stream keeps these in order by itself. So the event back is left out at first: the lane is *open*. Asynchronous
// copies, memsets and events *follow*: while the lane is open, they go to the confined stream as well (libraries set a
// word to zero before each second matrix product). The program's stream *joins* (waits for the confined stream) before
// any other driver call that could see the difference: one that names that stream, one that names another stream that
// the rules of the legacy default stream order with it, or one that waits for the device.
//
// So every function of the driver that takes a stream or acts on a default stream must do one of three things: be
// listed in joining_functions.inc, call the functions below in its hook, or be unable to see what a stream has done
// (stream_functions_test.py has the list, and compares all functions with cuda.h).
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "libgpuslice/base/launch_words.h"

namespace gpuslice {

/// Number of open lanes in this process.
inline constinit std::atomic<int>& g_open_lanes = g_launch_words.open_lanes;

struct Lane;

void join_open(CUstream stream);
void join_all_open();

/// Counts a driver call about a stream while it lives, from before the thread looks for open lanes until the call has
/// returned. A lane that opens meanwhile, for another thread, does not stay open: what the call puts into the program's
/// stream may come behind the lane's first event, where later launches of the lane would not wait for it.
class CallInFlight {
 public:
  explicit CallInFlight(CUstream stream)
      : calls_(g_launch_words.lanes_used.load(std::memory_order_relaxed) ? begin(stream) : nullptr) {}
  ~CallInFlight() {
    if (calls_) calls_->fetch_sub(1);
  }
  CallInFlight(const CallInFlight&) = delete;
  CallInFlight& operator=(const CallInFlight&) = delete;

 private:
  static std::atomic<int>* begin(CUstream stream);

  std::atomic<int>* const calls_;  ///< null: there is no lane
};

/// Called before a driver call about a stream that puts nothing there. A default stream is named by its own handle
/// (explicit_stream()). Any thread.
inline void join_before(CUstream stream) {
  if (g_open_lanes.load() > 0) join_open(stream);
}

/// Called before a driver call that waits for more than one stream, or that acts on the default stream of any context.
inline void join_all() {
  if (g_open_lanes.load() > 0) join_all_open();
}

/// A driver call that puts something into a stream, from before it until it has returned.
class StreamCall {
 public:
  explicit StreamCall(CUstream stream) : in_flight_(stream) { join_before(stream); }

 private:
  CallInFlight in_flight_;
};

/// A call that goes to the confined stream while the lane of `stream` is open. No lock is held meanwhile, as a copy may
/// wait for the GPU. If the lane joins meanwhile, the program's stream joins once more after the call.
class Following {
 public:
  /// All other lanes join that must join before a call about `stream`.
  explicit Following(CUstream stream);
  /// The confined stream; null: the lane is not open.
  CUstream confined() const { return confined_; }
  /// Called after the call if the driver took it.
  void done();
  /// Called after the call if the driver refused it: the program's stream joins.
  void refused();

 private:
  std::shared_ptr<Lane> lane_;
  CUstream confined_ = nullptr;
  std::shared_ptr<const void> hold_;  ///< on the part of that stream (green.h)
  std::uint64_t opening_ = 0;
};

/// Makes a call that only adds to what `stream` has to do. `call(other)`: null: with the stream as the program named
/// it; else in `other`. Any thread.
template <class Call>
CUresult follow(CUstream stream, Call call) {
  if (!g_launch_words.lanes_used.load(std::memory_order_relaxed)) [[likely]]
    return call(nullptr);
  const CallInFlight in_flight(stream);
  if (g_open_lanes.load() == 0) return call(nullptr);
  Following following(stream);
  const CUresult result = call(following.confined());
  if (result == CUDA_SUCCESS) {
    following.done();
    return result;
  }
  if (!following.confined()) return result;
  following.refused();
  return call(stream);
}

/// Called before a launch of that lane, which need not join itself.
void join_others(const Lane& lane);

/// Makes what forget_open_lanes_after_fork() uses.
void make_open_lanes();
void forget_open_lanes_after_fork();

}  // namespace gpuslice
