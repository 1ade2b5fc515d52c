// The launches of one stream of the program that have no persistent form (opaque.h): into which stream they go, and how
// far the program may be ahead of the GPU with them.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "libgpuslice/base/launch_words.h"
#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/streams/green.h"
#include "libgpuslice/streams/in_flight_limit.h"
#include "libgpuslice/streams/launch_timer.h"

namespace gpuslice {

/// Where launches are confined.
struct Place {
  GrantView::Part part;  ///< that asked for it
  GreenContexts::Confined there;
  GreenContexts::Hold hold;  ///< on the part `there`, while launches may go on there

  bool same_part(const Place& other) const { return part == other.part; }
};

/// Whether the stream is not ordered with default streams. False if the driver does not say.
bool is_apart(CUstream stream);

struct Lane;

/// The lane into which this thread launched lately, so that it is found without a lock. Null in `lane`: none.
struct LatestLane {
  CUstream stream;
  Lane* lane;
  std::uint32_t streams;  ///< LaunchWords::streams at that time

  /// The lane of this stream, if it is that one. In another context the handle of a default stream means another.
  Lane* of(CUstream wanted) const {
    return stream == wanted && streams == g_launch_words.streams.load(std::memory_order_acquire) ? lane : nullptr;
  }
};
extern __attribute__((tls_model("initial-exec"))) thread_local constinit LatestLane t_latest_lane;

struct Lane : std::enable_shared_from_this<Lane> {
  /// For a stream of the current context.
  explicit Lane(CUstream stream);
  ~Lane();

  static constexpr std::uint32_t kMarkEvery = 16;  // launches (in_flight_limit.h)

  std::mutex mutex;  ///< held through one call to the driver and what belongs to it
  const CUstream stream;
  CUcontext context = nullptr;
  bool apart = false;  ///< the stream is not ordered with default streams (CU_STREAM_NON_BLOCKING)
  CUevent fork, join;
  /// Events after every 16th launch, used round-robin: mark 1 is after the 16th launch, mark 2 after the 32nd.
  std::array<CUevent, InFlightLimit::kMost + 1> marks;
  InFlightLimit in_flight_limit;
  LaunchTimer timer;
  OpaqueJob job;  ///< the latest launch, while a policy for jobs is in force
  std::uint64_t launches = 0;
  std::atomic<std::uint64_t> marks_reached{0};  ///< number of the latest one that was found to be reached
  std::uint64_t blocks = 0;                     ///< blocks of the largest launch since the stream was last empty
  std::atomic<bool> busy{false};
  std::atomic<std::uint64_t> before_gate{0};  ///< `blocks`, while a launch waits for a grant and one before it goes on
  std::atomic<const char*> latest{nullptr};   ///< Opaque::Launch::name
  std::atomic<std::uint64_t> latest_ns{0};    ///< when it was launched; CLOCK_MONOTONIC
  std::atomic<std::uint32_t> latest_sms{0};   ///< how many SMs it was confined to; 0: not confined
  /// hash_of() of the latest confined kernel whose blocks might wait for what does not fit there with them. 0: none
  /// since the stream was empty.
  std::atomic<std::uint64_t> suspect{0};
  std::uint64_t stuck = 0;                ///< the suspect that was reported; guarded by the mutex of Opaque
  GrantView::Version decided;             ///< what decided where the latest launch goes (launch/repeated.h)
  std::uint64_t launches_when_empty = 0;  ///< `launches` when demand() last found the stream empty

  /// Whether the latest launches were confined to that part, and the program's stream has not joined since. It may be
  /// over by the time the caller knows.
  bool was_open_in(const GrantView::Part& part) const { return open() && opened_in_.load() == packed(part); }

  // The caller holds the mutex in all calls that follow.

  bool open() const { return open_.load(std::memory_order_acquire); }
  /// The place of the launches since the last join. Only while open().
  const Place& place() const { return place_; }
  /// Opens the lane, and makes the confined stream wait for the program's stream. Returns false if the driver refuses.
  /// This thread has no call in flight about the stream (joining.h).
  bool enter(const Place& place);
  /// Called after a confined launch. The program's stream joins now, or later if no call can miss it.
  void leave();
  /// Joins now; does nothing if the lane is not open.
  void join_now();
  /// Called before the first launch after a mark. Waits until the program is no further ahead of the GPU than it may
  /// be. `held`, which holds the mutex, is unlocked meanwhile, so other threads may join or launch.
  void wait_for_gpu(Ahead ahead, std::unique_lock<std::mutex>& held);
  /// Records the mark after the launches so far.
  void set_mark();
  /// Brings `marks_reached` up to date.
  void look_at_marks();
  /// Whether everything in the stream is complete.
  bool is_over() const;
  /// Whether the confined launches are. The program's stream may go on with others, which are in no lane.
  bool confined_is_over() const;

 private:
  friend void join_open(CUstream);
  friend void join_all_open();
  friend void join_soon(Lane&);
  friend class Following;
  CUevent& mark(std::uint64_t number) { return marks[number % marks.size()]; }
  void close();
  /// Makes the program's stream wait for that confined one.
  void wait_for(CUstream confined);

  static constexpr std::uint64_t packed(const GrantView::Part& part) {
    static_assert(gpuctl::kMaxSms < 1u << 16);
    return std::uint64_t{part.first} << 32 | part.count << 2 | (part.common ? 2u : 0u) | (part.pairs ? 1u : 0u);
  }

  Place place_;
  std::atomic<std::uint64_t> opened_in_{0};  ///< packed(place_.part)
  std::uint64_t opened_at_ = 0;              ///< `launches` when the lane was last opened
  std::uint64_t openings_ = 0;               ///< counts up each time the lane is opened
  bool may_stay_open_ = false;               ///< every call sees the lane that may have to wait for it
  std::atomic<bool> open_{false};
};

}  // namespace gpuslice
