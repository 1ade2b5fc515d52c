#include "libgpuslice/streams/lane.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <thread>

#include "libgpuslice/base/bypassing_libraries.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/streams/joining.h"

namespace gpuslice {

namespace {

using namespace std::chrono_literals;

// The longest wait. A program may set what its kernels wait for only after more launches, so it is not held up for
// long.
constexpr auto kLongestWait = 200ms;

CUevent make_event() {
  CUevent event = nullptr;
  if (!driver().cuEventCreate || driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    return nullptr;
  return event;
}

/// An event that the driver could not make, or that was never recorded, counts as reached.
bool is_reached(CUevent event) {
  return !event || driver().cuEventQuery(event) != CUDA_ERROR_NOT_READY;
}

/// The open lanes. A thread that holds a lane's mutex may take this one, not the other way round.
struct OpenLanes {
  static constexpr std::size_t kMost = 16;
  // nothing here allocates memory, so nothing throws in the program's calls
  using All = std::array<std::shared_ptr<Lane>, kMost>;

  std::mutex mutex;
  All lanes;  ///< null: a free entry

  All copy() {
    std::lock_guard lock(mutex);
    return lanes;
  }

  /// Those for which `which` is true, first in the array.
  template <class Which>
  All copy_if(Which which) {
    All found;
    std::size_t count = 0;
    std::lock_guard lock(mutex);
    for (const auto& lane : lanes)
      if (lane && which(*lane)) found[count++] = lane;
    return found;
  }

  template <class Test>
  bool any(Test test) {
    std::lock_guard lock(mutex);
    return std::ranges::any_of(lanes, test);
  }

  /// Replaces the entry `from` by `to`. Returns false if there is no such entry.
  bool change(const Lane* from, const std::shared_ptr<Lane>& to) {
    std::lock_guard lock(mutex);
    const auto found =
        std::find_if(lanes.begin(), lanes.end(), [from](const auto& lane) { return lane.get() == from; });
    if (found != lanes.end()) *found = to;
    return found != lanes.end();
  }
};

OpenLanes& open_lanes() {
  static auto* instance = new OpenLanes;  // programs launch in destructors too
  return *instance;
}

/// Calls in flight, by a few of the bits of their stream's handle.
struct CallsInFlight {
  static constexpr std::size_t kKinds = 32;
  std::array<std::atomic<int>, kKinds> calls{};

  static CallsInFlight& get() {
    static auto* instance = new CallsInFlight;  // programs launch in destructors too
    return *instance;
  }
  std::atomic<int>& of(CUstream stream) {
    const auto bits = reinterpret_cast<std::uintptr_t>(stream);
    return calls[(bits ^ bits >> 5 ^ bits >> 10) % kKinds];
  }
};

/// Whether a call may be in flight whose effects launches into `stream` must wait for: about that stream, or about any,
/// since the legacy stream and those that are not apart wait for each other.
bool calls_in_flight(CUstream stream) {
  CallsInFlight& all = CallsInFlight::get();
  if (stream != CU_STREAM_LEGACY) return all.of(stream).load() > 0;
  return std::ranges::any_of(all.calls, [](const auto& calls) { return calls.load() > 0; });
}

}  // namespace

thread_local constinit LatestLane t_latest_lane{};

std::atomic<int>* CallInFlight::begin(CUstream stream) {
  std::atomic<int>& calls = CallsInFlight::get().of(stream);
  calls.fetch_add(1);
  return &calls;
}

bool is_apart(CUstream stream) {
  unsigned flags = 0;
  if (is_default(stream) || !driver().cuStreamGetFlags) return false;
  return driver().cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS && (flags & CU_STREAM_NON_BLOCKING) != 0;
}

Lane::Lane(CUstream of) : stream(of), apart(is_apart(of)), fork(make_event()), join(make_event()) {
  g_launch_words.lanes_used = true;  // long before it opens: the part of the GPU is made meanwhile
  std::generate(marks.begin(), marks.end(), make_event);
  if (driver().cuCtxGetCurrent) driver().cuCtxGetCurrent(&context);
}

Lane::~Lane() {
  const auto destroy = [](CUevent event) {
    if (event) driver().cuEventDestroy_v2(event);
  };
  for (CUevent event : {fork, join}) destroy(event);
  std::for_each(marks.begin(), marks.end(), destroy);
}

bool Lane::enter(const Place& place) {
  if (!fork || !join) return false;
  place_ = place;
  opened_in_ = packed(place.part);
  opened_at_ = launches;
  ++openings_;
  // No other thread can make a thread's own stream join later.
  if (stream != CU_STREAM_PER_THREAD) {
    open_.store(true, std::memory_order_release);
    g_open_lanes.fetch_add(1);
    const bool noted = open_lanes().change(nullptr, shared_from_this());
    may_stay_open_ = noted && !calls_in_flight(apart ? stream : CU_STREAM_LEGACY);
  }
  if (driver().cuEventRecord(fork, stream) == CUDA_SUCCESS &&
      driver().cuStreamWaitEvent(place.there.stream, fork, 0) == CUDA_SUCCESS)
    return true;
  close();
  place_.hold.reset();
  return false;
}

void Lane::leave() {
  if (!open()) {
    wait_for(place_.there.stream);
    return place_.hold.reset();
  }
  // Outsiders do not call us before they use a stream. A capture that began before the lane was in the list did not see
  // the lane. One that begins from here on does.
  const bool outsiders = bypassing_library_loaded(latest_ns.load(std::memory_order_relaxed));
  if (!may_stay_open_ || outsiders || capturing_anything()) join_now();
}

void Lane::close() {
  if (!open()) return;
  open_lanes().change(this, nullptr);
  open_.store(false, std::memory_order_release);
  place_.hold.reset();
  g_open_lanes.fetch_sub(1);
}

void Lane::wait_for(CUstream confined) {
  std::optional<InContext> current;
  if (is_default(stream)) current.emplace(context);
  if (driver().cuEventRecord(join, confined) != CUDA_SUCCESS ||
      driver().cuStreamWaitEvent(stream, join, 0) != CUDA_SUCCESS)
    // What follows in the program's stream must come after the confined launch.
    driver().cuStreamSynchronize(confined);
}

void Lane::join_now() {
  if (!open()) return;
  wait_for(place_.there.stream);
  debug("stream %p joins %llu launches on %u SMs", static_cast<void*>(stream),
        static_cast<unsigned long long>(launches - opened_at_), place_.there.sms);
  close();
}

namespace {

/// Calls `visit` for each open lane that must join before a call about `stream`.
template <class Visit>
void visit_ordered(CUstream stream, Visit visit) {
  std::optional<bool> apart;
  for (const auto& lane : open_lanes().copy_if([&](const Lane& one) { return one.stream == stream || !one.apart; })) {
    if (!lane) break;
    if (lane->stream != stream) {
      if (!apart) apart = is_apart(stream);
      if (*apart) continue;
    }
    visit(lane);
  }
}

/// Locks a lane that another thread may be using. Null if the lane is not open any more.
std::unique_lock<std::mutex> lock_open(Lane& lane) {
  while (lane.open()) {
    std::unique_lock lock(lane.mutex, std::try_to_lock);
    if (lock.owns_lock()) return lane.open() ? std::move(lock) : std::unique_lock<std::mutex>();
    std::this_thread::sleep_for(2us);
  }
  return {};
}

}  // namespace

/// Makes a lane join that another thread may be using. A launch holds the lane's mutex only briefly while the lane is
/// open: it joins, or unlocks the mutex, before it waits.
void join_soon(Lane& lane) {
  if (const std::unique_lock lock = lock_open(lane)) lane.join_now();
}

void join_open(CUstream stream) {
  visit_ordered(stream, [](const auto& lane) { join_soon(*lane); });
}

Following::Following(CUstream stream) {
  CUcontext current = nullptr;
  const bool named_by_context = is_default(stream);
  if (named_by_context) driver().cuCtxGetCurrent(&current);
  const auto visit = [&](Lane& lane) {
    if (lane.stream != stream || (named_by_context && lane.context != current)) return join_soon(lane);
    if (const std::unique_lock lock = lock_open(lane)) {
      lane_ = lane.shared_from_this();
      confined_ = lane.place_.there.stream;
      hold_ = lane.place_.hold;
      opening_ = lane.openings_;
    }
  };
  // Mostly the only open lane is that of the launch before.
  Lane* latest = t_latest_lane.of(stream);
  if (latest && latest->open() && g_open_lanes.load(std::memory_order_acquire) == 1)
    visit(*latest);
  else
    visit_ordered(stream, [&](const std::shared_ptr<Lane>& lane) { visit(*lane); });
}

void Following::done() {
  if (!lane_) return;
  const std::lock_guard lock(lane_->mutex);
  const bool same = lane_->open() && lane_->openings_ == opening_;
  if (same) return;
  lane_->wait_for(confined_);
  lane_->join_now();  // its launches do not wait for this
}

void Following::refused() {
  if (lane_) join_soon(*lane_);
}

void join_others(const Lane& self) {
  if (self.apart || g_open_lanes.load(std::memory_order_acquire) == 0) return;
  const auto must_join = [&self](const auto& lane) { return lane && lane.get() != &self && !lane->apart; };
  if (!open_lanes().any(must_join)) return;
  for (const auto& lane : open_lanes().copy()) {
    if (must_join(lane)) join_soon(*lane);
  }
}

void join_all_open() {
  for (const auto& lane : open_lanes().copy())
    if (lane) join_soon(*lane);
}

void make_open_lanes() {
  static_cast<void>(open_lanes());
  static_cast<void>(CallsInFlight::get());
}

void forget_open_lanes_after_fork() {
  new (&open_lanes()) OpenLanes;
  new (&CallsInFlight::get()) CallsInFlight;
  g_open_lanes = 0;
}

void Lane::wait_for_gpu(Ahead ahead, std::unique_lock<std::mutex>& held) {
  const std::uint64_t latest = launches / kMarkEvery, before = in_flight_limit.marks(ahead);
  if (latest <= before) return;
  const RelaxedCapture relaxed;  // another thread may have begun a capture
  const CUevent awaited = mark(latest - before);
  bool reached = is_reached(awaited);
  const bool waits = !reached;
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  while (!reached && std::chrono::steady_clock::now() < until) {
    held.unlock();
    std::this_thread::sleep_for(20us);
    held.lock();
    reached = is_reached(awaited);
  }
  if (reached) in_flight_limit.reached(latest - before, waits, monotonic_ns());
}

void Lane::set_mark() {
  if (CUevent event = mark(launches / kMarkEvery)) driver().cuEventRecord(event, open() ? place_.there.stream : stream);
}

void Lane::look_at_marks() {
  const std::uint64_t latest = launches / kMarkEvery;
  std::uint64_t reached = std::max(marks_reached.load(), latest - std::min<std::uint64_t>(latest, marks.size() - 1));
  while (reached < latest && is_reached(mark(reached + 1))) ++reached;
  marks_reached = reached;
}

bool Lane::confined_is_over() const {
  const RelaxedCapture relaxed;  // neither is part of a capture, whatever the program captures meanwhile
  return open() ? driver().cuStreamQuery(place_.there.stream) == CUDA_SUCCESS : is_reached(join);
}

bool Lane::is_over() const {
  const NoCapture guard;
  if (!guard) return false;
  if (open() && driver().cuStreamQuery(place_.there.stream) != CUDA_SUCCESS) return false;
  // The stream of another thread cannot be queried.
  if (stream == CU_STREAM_PER_THREAD) return !join || driver().cuEventQuery(join) == CUDA_SUCCESS;
  return driver().cuStreamQuery(stream) == CUDA_SUCCESS;
}

}  // namespace gpuslice
