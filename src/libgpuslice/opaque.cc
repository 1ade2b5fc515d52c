#include "libgpuslice/opaque.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "libgpuslice/capture.h"
#include "libgpuslice/context.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/driver.h"
#include "libgpuslice/relaxed_capture.h"
#include "libgpuslice/run_ahead.h"

namespace gpuslice {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMarkEvery = 16;  // launches (run_ahead.h)
// A program may only go on when it has launched more, to set what its kernels wait for: so it is not held up for long.
constexpr auto kLongestWait = 200ms;

CUevent make_event() {
  CUevent event = nullptr;
  if (!driver().cuEventCreate || driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return nullptr;
  return event;
}

/// An event that the driver could not make, or that was never recorded, counts as reached.
bool is_reached(CUevent event) { return !event || driver().cuEventQuery(event) != CUDA_ERROR_NOT_READY; }

}  // namespace

/// The opaque launches of one stream of the program.
struct Lane {
  std::mutex mutex;
  CUstream stream = nullptr;
  CUevent fork = make_event(), join = make_event();
  std::array<CUevent, RunAhead::kMost + 1> marks;  ///< behind the launches number 16, 32, 48, ... by turns; mark 1 is behind the 16th
  RunAhead ahead;
  std::uint64_t launches = 0;
  std::uint64_t blocks = 0;             ///< of the largest launch since the stream was last empty
  std::atomic<bool> busy{false};
  std::atomic<const char*> latest{nullptr};  ///< Opaque::Launch::name
  std::atomic<std::uint64_t> latest_ns{0};   ///< when it was launched; CLOCK_MONOTONIC
  std::atomic<std::uint32_t> latest_sms{0};  ///< on how many SMs; 0: on any
  std::uint64_t launches_when_empty = 0;  ///< how many it had when demand() last found it empty

  Lane() { std::generate(marks.begin(), marks.end(), make_event); }
  ~Lane() {
    const auto destroy = [](CUevent event) {
      if (event) driver().cuEventDestroy_v2(event);
    };
    for (CUevent event : {fork, join}) destroy(event);
    std::for_each(marks.begin(), marks.end(), destroy);
  }

  CUevent& mark(std::uint64_t number) { return marks[number % marks.size()]; }
  void wait_for_gpu(bool alone);
};

/// Before the first launch behind a mark: until the program is not too far ahead.
void Lane::wait_for_gpu(bool alone) {
  const std::uint64_t latest = launches / kMarkEvery, before = ahead.marks(alone);
  if (latest <= before) return;
  const RelaxedCapture relaxed;  // another thread may have begun a capture meanwhile
  const CUevent awaited = mark(latest - before);
  bool reached = is_reached(awaited);
  const bool waits = !reached;
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  while (!reached && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(20us);
    reached = is_reached(awaited);
  }
  if (reached) ahead.reached(latest - before, waits, monotonic_ns());
}

namespace {

/// Whether everything in the stream is complete. With the lane's mutex.
bool is_over(const Lane& lane) {
  const NoCapture guard;
  if (!guard) return false;
  // Another thread's own stream cannot be asked for.
  if (lane.stream == CU_STREAM_PER_THREAD) return !lane.join || driver().cuEventQuery(lane.join) == CUDA_SUCCESS;
  return driver().cuStreamQuery(lane.stream) == CUDA_SUCCESS;
}

}  // namespace

Lane& Opaque::lane_of(CUstream stream) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Lane>& lane = lanes_[stream_key(stream)];
  if (!lane) {
    lane = std::make_shared<Lane>();
    lane->stream = stream;
  }
  return *lane;
}

void Opaque::wait_for_grant() const {
  while (context_.granted() == 0 && !context_.ended()) std::this_thread::sleep_for(50us);
}

Opaque::Turn::Turn(Opaque& opaque, CUstream stream, const Launch& launch)
    : stream_(stream), lane_(&opaque.lane_of(stream)), lock_(lane_->mutex) {
  lane_->blocks = lane_->busy.load(std::memory_order_relaxed) ? std::max(lane_->blocks, launch.blocks) : launch.blocks;
  lane_->latest = launch.name;
  lane_->latest_ns = monotonic_ns();
  lane_->latest_sms = 0;
  if (!lane_->busy.exchange(true)) opaque.context_.opaque_started(launch.blocks);
  opaque.wait_for_grant();
  if (lane_->launches % kMarkEvery == 0) lane_->wait_for_gpu(opaque.context_.alone());
  const std::uint32_t granted = opaque.context_.granted();
  confined_.none = granted >= opaque.context_.sms() ? "all are granted" : "the driver made no events";
  if (!launch.confine || granted == 0 || granted >= opaque.context_.sms() || !lane_->fork || !lane_->join) return;
  const RelaxedCapture relaxed;
  const GreenContexts::Confined there =
      opaque.green_.stream(opaque.context_.first_sm(), granted, launch.least, stream, lane_);
  if (!there.stream) {
    confined_.none = there.none;
  } else if (driver().cuEventRecord(lane_->fork, stream) == CUDA_SUCCESS &&
             driver().cuStreamWaitEvent(there.stream, lane_->fork, 0) == CUDA_SUCCESS) {
    confined_ = there;
    lane_->latest_sms = there.sms;
  }
}

Opaque::Turn::~Turn() {
  if (confined() && (driver().cuEventRecord(lane_->join, confined_.stream) != CUDA_SUCCESS ||
                     driver().cuStreamWaitEvent(stream_, lane_->join, 0) != CUDA_SUCCESS)) {
    driver().cuStreamSynchronize(confined_.stream);  // what follows in the program's stream must come after it
  }
  if (stream_ == CU_STREAM_PER_THREAD && lane_->join) driver().cuEventRecord(lane_->join, stream_);  // for demand()
  if (++lane_->launches % kMarkEvery == 0) {
    if (CUevent mark = lane_->mark(lane_->launches / kMarkEvery)) driver().cuEventRecord(mark, stream_);
  }
}

// A stream that was found empty twice, with nothing launched in between, is over: to begin again costs a launch more than to go on, and
// a program that is hardly ahead of the GPU would do so all the time.
std::uint32_t Opaque::demand() {
  std::uint64_t blocks = 0;
  std::lock_guard lock(mutex_);
  for (const auto& [key, lane] : lanes_) {
    if (!lane->busy.load(std::memory_order_acquire)) continue;
    std::unique_lock turn(lane->mutex, std::try_to_lock);
    if (!turn.owns_lock()) {  // a launch is under way
      ++blocks;
    } else if (is_over(*lane) && std::exchange(lane->launches_when_empty, lane->launches) == lane->launches) {
      lane->busy.store(false, std::memory_order_release);
    } else {
      blocks += lane->blocks;
    }
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(blocks, context_.sms()));
}

void Opaque::report_slow() {
  constexpr std::uint64_t kSlowNs = 1'000'000'000;
  std::lock_guard lock(mutex_);
  const std::uint64_t now = monotonic_ns();
  for (const auto& [key, lane] : lanes_) {
    if (!lane->busy.load() || now - lane->latest_ns < kSlowNs) continue;
    debug("%s, in its original form, %llu ms ago was the latest in a stream that does not end; on %u SMs (0: any), granted %u", lane->latest.load(),
          static_cast<unsigned long long>((now - lane->latest_ns) / 1'000'000), lane->latest_sms.load(), context_.granted());
  }
}

void Opaque::stream_destroyed(CUstream stream) {
  std::shared_ptr<Lane> lane;
  {
    std::lock_guard lock(mutex_);
    const auto found = lanes_.find({stream, 0});
    if (found == lanes_.end()) return;
    lane = std::move(found->second);
    lanes_.erase(found);
  }
  // Not under the mutex, which the agent takes: another thread may be making a green context, and that waits for launches
  // to complete.
  green_.forget(lane.get());
}

}  // namespace gpuslice
