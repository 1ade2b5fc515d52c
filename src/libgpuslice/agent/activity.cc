#include "libgpuslice/agent/activity.h"

#include <new>

#include "ipc/stub_map.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/agent/hold.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/client/client.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

constexpr std::chrono::milliseconds kUsually{200};
/// Used while this client's SMs may be lent: other clients can have them as soon as there is no work.
constexpr std::chrono::milliseconds kWhileLent{20};

}  // namespace

constinit Activity Activity::instance_;

int Activity::free_device() {
  CUdevice device = -1;
  const Driver& d = driver();
  if (!d.cuCtxGetDevice || d.cuCtxGetDevice(&device) != CUDA_SUCCESS) return -1;
  const ipc::Grant* grant = Client::get().grant(device);
  if (!grant || ipc::mode_of(ipc::load(grant->flags)) != ipc::Mode::free) return -1;
  if (!leaves_time_slices(*grant) && !Contexts::current()) return -1;
  return device;
}

void Activity::begin_work(int index, std::uint32_t blocks) {
  if (devices_[static_cast<std::size_t>(index)].at_work.exchange(true)) return;
  any_.store(true, std::memory_order_relaxed);
  publish(index, std::max(blocks, 1u));
  if (ipc::load(Client::get().grant(index)->flags) & ipc::kReportWork) Client::get().kick();
}

void Activity::publish(int device, std::uint32_t demand) {
  if (ipc::Stub* stub = Client::get().stub()) ipc::store(stub->usage[device].demand, demand);
}

std::uint32_t Activity::count(std::size_t index) {
  Device& device = devices_[index];
  std::uint32_t before = device.counted.load(std::memory_order_relaxed), now = 0;
  do now = device.launches.load(std::memory_order_relaxed);
  while (!device.counted.compare_exchange_weak(before, now));
  const std::uint32_t more = now - before;
  if (ipc::Stub* stub = Client::get().stub(); stub && more > 0)
    __atomic_fetch_add(&stub->usage[index].launches, more, __ATOMIC_RELAXED);
  return more;
}

void Activity::count() {
  for (std::size_t i = 0; i < devices_.size(); ++i) count(i);
}

std::chrono::milliseconds Activity::look() {
  std::chrono::milliseconds next = kUsually;
  look_at_holds();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Device& device = devices_[i];
    const std::uint32_t more = count(i);
    if (ipc::Stub* stub = Client::get().stub()) {
      const bool open = device.burst.open();
      if (ipc::LatencyCounts& latency = ipc::latency_at(*stub, i); (ipc::load(latency.open) != 0) != open)
        ipc::store(latency.open, std::uint32_t{open});
    }
    if (!device.at_work.load()) continue;
    const ipc::Grant* grant = Client::get().grant(static_cast<int>(i));
    if (more > 0 && grant && ipc::mode_of(ipc::load(grant->flags)) == ipc::Mode::free) {
      publish(static_cast<int>(i), std::max(device.blocks.load(std::memory_order_relaxed), 1u));
      if (ipc::load(grant->flags) & ipc::kReportWork) next = kWhileLent;
      continue;
    }
    device.at_work.store(false);  // a thread that launches from here on sets it again
    device.blocks.store(0, std::memory_order_relaxed);
    publish(static_cast<int>(i), 0);
    for (Context* context : Contexts::all()) context->publish_usage();
  }
  return next;
}

void Activity::forget_after_fork() {
  new (this) Activity;
}

}  // namespace gpuslice
