#include "libgpuslice/client/held_memory.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "ipc/stub_map.h"
#include "libgpuslice/base/allocations.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/client/client.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::Result;

namespace {

/// Between two questions while no daemon answers.
constexpr std::chrono::milliseconds kPause{10};

bool counts(CUdevice device) {
  return device >= 0 && device < static_cast<CUdevice>(ipc::kMaxDevices);
}

}  // namespace

HeldMemory& HeldMemory::get() {
  static auto* held = new HeldMemory;
  return *held;
}

/// Null: no limit applies to this process's memory on that device.
const ipc::Grant* HeldMemory::limited(CUdevice device) const {
  const ipc::Stub* stub = Client::get().stub();
  return stub && (ipc::load(stub->grant[device].flags) & ipc::kMemoryLimited) ? &stub->grant[device] : nullptr;
}

void HeldMemory::change(CUdevice device, std::uint64_t held) {
  held_[device] = held;
  if (ipc::Stub* stub = Client::get().stub()) ipc::store(stub->usage[device].memory, held);
}

/// Calls `take(patient, wait)` with the mutex until it knows, once a daemon that has gone is replaced, or without one.
/// Then waits without it, so that other threads can free memory meanwhile.
template <class Take>
bool HeldMemory::patiently(Take take) {
  const auto until = std::chrono::steady_clock::now() + ipc::kGrace;
  std::chrono::microseconds wait{};
  std::optional<bool> taken;
  for (;; std::this_thread::sleep_for(kPause)) {
    std::lock_guard lock(mutex_);
    taken = take(std::chrono::steady_clock::now() < until, wait);
    if (taken) break;
  }
  if (*taken && wait.count() > 0) std::this_thread::sleep_for(wait);
  return *taken;
}

bool HeldMemory::take(CUdevice device, std::uint64_t bytes) {
  if (!counts(device)) return true;
  return patiently([&](bool patient, auto& wait) { return take_locked(device, bytes, patient, wait); });
}

/// Empty: no daemon has answered, and it is worth while to ask again.
std::optional<bool> HeldMemory::take_locked(CUdevice device, std::uint64_t bytes, bool patient,
                                            std::chrono::microseconds& wait) {
  const std::uint64_t wanted = held_[device] + bytes;
  if (wanted < bytes) return false;
  if (const ipc::Grant* grant = limited(device)) {
    const Result<Client::MemoryAnswer> answer = Client::get().ask_memory(device, wanted);
    const ipc::Stub* page = Client::get().stub();
    const bool refuses = ipc::load(grant->memory_max) != ipc::kNoMemoryMax;
    if (!answer && patient && refuses && unanswered_ != page) return std::nullopt;
    if (!answer) unanswered_ = page;
    if (answer) wait = answer->wait;
    // Without a daemon it is unknown what others hold, but the limit is known.
    const bool granted = answer ? answer->granted : wanted <= ipc::load(grant->memory_max);
    if (!granted) {
      debug("%llu bytes of memory refused: %llu are held", static_cast<unsigned long long>(bytes),
            static_cast<unsigned long long>(held_[device]));
      return false;
    }
  }
  change(device, wanted);
  return true;
}

void HeldMemory::give_back(CUdevice device, std::uint64_t bytes) {
  if (!counts(device) || bytes == 0) return;
  std::lock_guard lock(mutex_);
  change(device, held_[device] - std::min(held_[device], bytes));
  if (limited(device)) Client::get().tell_memory(device, held_[device]);
}

bool HeldMemory::take_for_graphs(CUdevice device, std::uint64_t bytes) {
  if (!counts(device)) return true;
  return patiently([&](bool patient, auto& wait) -> std::optional<bool> {
    if (bytes <= of_graphs_[device]) return true;
    const std::optional<bool> taken = take_locked(device, bytes - of_graphs_[device], patient, wait);
    if (taken.value_or(false)) of_graphs_[device] = bytes;
    return taken;
  });
}

void HeldMemory::set_graphs(CUdevice device, std::uint64_t bytes) {
  if (!counts(device)) return;
  std::lock_guard lock(mutex_);
  const std::uint64_t before = std::exchange(of_graphs_[device], bytes);
  if (before == bytes) return;
  change(device, held_[device] - std::min(held_[device], before) + bytes);
  if (limited(device)) Client::get().tell_memory(device, held_[device]);
}

std::uint64_t HeldMemory::of_graphs(CUdevice device) const {
  if (!counts(device)) return 0;
  std::lock_guard lock(mutex_);
  return of_graphs_[device];
}

void HeldMemory::allocated(CUdeviceptr address, CUcontext context, CUdevice device, std::uint64_t taken,
                           std::uint64_t bytes) {
  Allocations::get().add(address, bytes);
  if (!counts(device)) return;
  std::lock_guard lock(mutex_);
  allocations_[address] = {context, device, bytes};
  if (taken != bytes) change(device, held_[device] - std::min(held_[device], taken) + bytes);
}

HeldMemory::Allocation HeldMemory::remove(CUdeviceptr address) {
  Allocations::get().remove(address);
  std::lock_guard lock(mutex_);
  const auto known = allocations_.extract(address);
  return known ? known.mapped() : Allocation{};
}

void HeldMemory::restore(CUdeviceptr address, const Allocation& allocation) {
  Allocations::get().add(address, allocation.bytes);
  std::lock_guard lock(mutex_);
  if (allocation.bytes != 0) allocations_[address] = allocation;
}

template <class Which>
void HeldMemory::forget_if(Which which) {
  std::array<std::uint64_t, ipc::kMaxDevices> gone{};
  {
    std::lock_guard lock(mutex_);
    std::erase_if(allocations_, [&](const auto& known) {
      const Allocation& allocation = known.second;
      if (!which(allocation)) return false;
      gone[allocation.device] += allocation.bytes;
      Allocations::get().remove(known.first);
      return true;
    });
  }
  for (std::size_t device = 0; device < gone.size(); ++device) {
    if (gone[device] != 0) give_back(static_cast<CUdevice>(device), gone[device]);
  }
}

void HeldMemory::forget(CUcontext context) {
  forget_if([context](const Allocation& allocation) { return allocation.context == context; });
}

void HeldMemory::forget_device(CUdevice device) {
  forget_if([device](const Allocation& allocation) { return allocation.device == device; });
  set_graphs(device, 0);
}

void HeldMemory::limit(CUdevice device, std::size_t* free, std::size_t* total) {
  if (!counts(device)) return;
  std::lock_guard lock(mutex_);
  const ipc::Grant* grant = limited(device);
  if (!grant) return;
  std::uint64_t most = ipc::load(grant->memory_max);
  std::uint64_t left = most - std::min(most, held_[device]);
  if (const Result<Client::MemoryAnswer> answer = Client::get().ask_memory(device, held_[device])) {
    most = answer->total.value_or(SIZE_MAX);
    left = answer->free.value_or(SIZE_MAX);
  }
  if (free) *free = std::min<std::uint64_t>(*free, left);
  if (total) *total = std::min<std::uint64_t>(*total, most);
}

void HeldMemory::publish() {
  std::lock_guard lock(mutex_);
  for (std::size_t device = 0; device < held_.size(); ++device) change(static_cast<CUdevice>(device), held_[device]);
}

void HeldMemory::forget_after_fork() {
  new (this) HeldMemory;
}

}  // namespace gpuslice
