#include "libgpuslice/agent/bursts.h"

#include <algorithm>
#include <shared_mutex>
#include <thread>

#include "base/latency_buckets.h"
#include "ipc/stub_map.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/nothrow.h"
#include "libgpuslice/base/tick_clock.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

/// The device of the current context, below kMaxDevices; -1: there is none.
int device_of_context() {
  if (g_launch_words.one_device.load(std::memory_order_relaxed)) return 0;
  CUdevice device = -1;
  const auto ask = driver().cuCtxGetDevice;
  if (!ask || ask(&device) != CUDA_SUCCESS || device >= static_cast<int>(ipc::kMaxDevices)) return -1;
  return device;
}

/// One bucket of the page: of the device's bursts, or of its requests. Under the lock of the device's burst, so nothing
/// else writes there.
[[gnu::always_inline]] inline void count(ipc::LatencyCounts& counts, std::uint32_t (&buckets)[gpuctl::kLatencyBuckets],
                                         std::uint64_t ns) {
  std::uint32_t& bucket = buckets[gpuctl::latency_bucket(ns)];
  ipc::store(bucket, ipc::load(bucket) + 1);
  ipc::store(counts.counted, ipc::load(counts.counted) + 1);
}

/// Whether launches in streams of ours are complete, of all managed contexts of the device.
bool lanes_idle(int device) {
  if (g_launch_words.open_lanes.load(std::memory_order_acquire) == 0) return true;
  return std::ranges::all_of(Contexts::all(), [device](Context* context) {
    if (context->device() != device || context->ended()) return true;
    // Of other contexts it is not known.
    return current_context() == context->handle() && context->opaque().idle();
  });
}

/// An event can be seen before its stream is seen to be done, by a little.
constexpr int kTriesAfterWait = 3;

/// Asks the driver whether a stream of the device is idle. While a capture begins or a thread is in a call that blocks
/// in the driver, it is not asked.
class Ask {
 public:
  explicit Ask(int device, int tries = 1) : device_(device), tries_(tries) {}

  template <class There>
  [[gnu::noinline]] bool operator()(const StreamKey& key, There there) const {
    return nothrow([&] { return asked(key, there); }, false);
  }

 private:
  template <class There>
  bool asked(const StreamKey& key, There there) const {
    const std::shared_lock lock(Activity::get().streams_used());
    if (!there() || Contexts::exiting() || QuiesceLaunches::any()) return false;
    if (key != stream_key(key.first)) return false;  // of another thread
    for (int i = 0; i < tries_; ++i) {
      if (i > 0) std::this_thread::yield();
      if (idle(key.first)) return true;
    }
    return false;
  }
  bool idle(CUstream stream) const {
    if (!lanes_idle(device_)) return false;
    if (is_default(stream) && device_of_context() != device_) return false;  // that would be another device's
    const NoCapture guard;
    return guard && driver().cuStreamQuery && driver().cuStreamQuery(stream) == CUDA_SUCCESS;
  }

  int device_, tries_;
};

/// Counts a burst of a device that has ended, under its lock.
[[gnu::always_inline]] inline void count_burst(int device, std::uint64_t ns) {
  ipc::Stub* page = g_launch_words.page.load(std::memory_order_acquire);
  if (!page) return;
  ipc::LatencyCounts& counts = ipc::latency_at(*page, static_cast<std::size_t>(device));
  count(counts, counts.bursts, ns);
  ipc::store(counts.bursts_ended, ipc::load(counts.bursts_ended) + 1);
  ipc::store(counts.burst_ns, ipc::load(counts.burst_ns) + ns);
}

/// A wait that has seen so much has returned.
[[gnu::noinline]] void waited(int device, Burst::Seen seen, CUstream stream, std::uint64_t now_ns) {
  Activity::get().burst(device).waited(seen, stream, now_ns, Ask(device, kTriesAfterWait),
                                       [device](std::uint64_t ns) { count_burst(device, ns); });
}

[[gnu::noinline]] void issued_slowly(int device, CUstream stream, bool reads_results) {
  if (capturing(stream)) return;
  Activity::get().burst(device).issued(stream, TickClock::now_ns, Ask(device), reads_results);
}

[[gnu::noinline]] void waited_for_some_device(Burst::Seen seen, CUstream stream, std::uint64_t now_ns) {
  const Activity& activity = Activity::get();
  const int current = device_of_context();
  const bool of_any_device =
      seen == Burst::Seen::kStream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
  for (int device = 0; device < Activity::devices(); ++device)
    if (activity.burst(device).open())
      waited(device, device == current || of_any_device ? seen : Burst::Seen::kSome, stream, now_ns);
}

}  // namespace

[[gnu::noinline]] void issued(int device, CUstream stream, bool reads_results) {
  if (!capturing_anything())
    if (const std::uint64_t now_ns = TickClock::counter_ns())
      if (Activity::get().burst(device).try_begin(stream, now_ns)) return;
  issued_slowly(device, stream, reads_results);
}

[[gnu::noinline]] void issued_to_current(CUstream stream, bool reads_results) {
  const int device = device_of_context();
  if (device < 0) return;
  Activity::get().count_other_work(device);
  if (!Activity::get().burst(device).knows(stream)) issued(device, stream, reads_results);
}

[[gnu::noinline]] void BurstWait::end_slowly(Burst::Seen seen, CUstream stream) const {
  const std::uint64_t now_ns = TickClock::now_ns();
  // What was put there meanwhile may have come too late for the wait.
  if (Activity::get().issued_so_far() != before_) seen = Burst::Seen::kSome;
  if (g_launch_words.one_device.load(std::memory_order_relaxed)) return waited(0, seen, stream, now_ns);
  waited_for_some_device(seen, stream, now_ns);
}

[[gnu::noinline]] void BurstWait::end(Burst::Seen seen, CUstream stream) const {
  if (g_launch_words.one_device.load(std::memory_order_relaxed) && Activity::get().issued_so_far() == before_)
    if (const std::uint64_t now_ns = TickClock::counter_ns())
      if (Activity::get().burst(0).try_end(seen, stream, now_ns, [](std::uint64_t ns) { count_burst(0, ns); })) return;
  end_slowly(seen, stream);
}

int current_burst_device() {
  return device_of_context();
}

bool work_runs(int device) {
  return Activity::get().burst(device).any_runs([device](const StreamKey& key, auto there) {
    // Of another thread, or another device's: it cannot be asked.
    if (key != stream_key(key.first) || (is_default(key.first) && device_of_context() != device)) return false;
    const std::shared_lock lock(Activity::get().streams_used());
    const NoCapture guard;
    if (!there() || !guard) return true;  // it is asked at the next look
    return driver().cuStreamQuery && driver().cuStreamQuery(key.first) == CUDA_ERROR_NOT_READY;
  });
}

bool burst_idle(int device) {
  return Activity::get().burst(device).idle(Ask(device));
}

void burst_stream_destroyed(CUstream stream) {
  Activity& activity = Activity::get();
  const std::unique_lock lock(activity.streams_used());
  for (int device = 0; device < activity.devices(); ++device)
    if (activity.burst(device).open()) activity.burst(device).destroyed(stream_key(stream));
}

void forget_burst(int device) {
  Activity& activity = Activity::get();
  const std::unique_lock lock(activity.streams_used());
  for (int i = 0; i < activity.devices(); ++i)
    if (i == device || device == QuiesceLaunches::kAllDevices) activity.burst(i).forget();
}

bool count_request(std::uint64_t ns) {
  ipc::Stub* page = g_launch_words.page.load(std::memory_order_acquire);
  if (!page) return false;
  const int device = std::max(device_of_context(), 0);
  ipc::LatencyCounts& counts = ipc::latency_at(*page, static_cast<std::size_t>(device));
  Activity::get().burst(device).counting([&] { count(counts, counts.requests, ns); });
  return true;
}

}  // namespace gpuslice
