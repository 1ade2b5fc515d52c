// The launches of one stream of the program that have no persistent form (opaque.h): in which stream they go on, and
// how far the program may be ahead with them.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "libgpuslice/streams/green.h"
#include "libgpuslice/streams/launch_timer.h"
#include "libgpuslice/streams/run_ahead.h"

namespace gpuslice {

/// Where launches are confined to, and by which grant.
struct Place {
  std::uint32_t first = 0, granted = 0;  ///< SMs of the grant
  GreenContexts::Confined there;
};

struct Lane : std::enable_shared_from_this<Lane> {
  /// Of a stream of the current context.
  explicit Lane(CUstream stream);
  ~Lane();

  static constexpr std::uint32_t kMarkEvery = 16;  // launches (run_ahead.h)

  std::mutex mutex;  ///< held through a launch
  const CUstream stream;
  CUcontext context = nullptr;
  bool apart = false;  ///< the stream has nothing to do with default streams (CU_STREAM_NON_BLOCKING)
  CUevent fork, join;
  /// Behind the launches number 16, 32, 48, ... by turns; mark 1 is behind the 16th.
  std::array<CUevent, RunAhead::kMost + 1> marks;
  RunAhead ahead;
  LaunchTimer timer;
  OpaqueJob job;  ///< the latest launch, while a policy for jobs is in force
  std::uint64_t launches = 0;
  std::uint64_t blocks = 0;  ///< of the largest launch since the stream was last empty
  std::atomic<bool> busy{false};
  std::atomic<const char*> latest{nullptr};  ///< Opaque::Launch::name
  std::atomic<std::uint64_t> latest_ns{0};   ///< when it was launched; CLOCK_MONOTONIC
  std::atomic<std::uint32_t> latest_sms{0};  ///< on how many SMs; 0: on any
  std::uint64_t launches_when_empty = 0;     ///< how many it had when demand() last found it empty

  // What follows is called with the mutex.

  bool open() const { return open_.load(std::memory_order_acquire); }
  /// Where the launches since the last join are. With open().
  const Place& place() const { return place_; }
  /// Has the confined stream wait for the program's. False: the driver does not.
  bool enter(const Place& place);
  /// After a launch there: the program's stream joins now, or later if nothing can miss it (joining.h).
  void leave();
  /// Now, unless it is not open.
  void join_now();
  /// Before the first launch behind a mark, until the program is not too far ahead; joins before it waits.
  void wait_for_gpu(bool alone);
  /// Puts the mark behind what has been launched.
  void set_mark();
  /// Whether everything in the stream is complete.
  bool is_over() const;

 private:
  friend void join_open(CUstream);
  friend void join_all_open();
  friend void join_soon(Lane&);
  CUevent& mark(std::uint64_t number) { return marks[number % marks.size()]; }
  void wait_for_confined();

  Place place_;
  std::uint64_t opened_at_ = 0;  ///< `launches` then
  std::atomic<bool> open_{false};
};

}  // namespace gpuslice
