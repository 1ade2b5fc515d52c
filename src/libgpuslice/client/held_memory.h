// What this process holds of each device's memory, and whether it may hold more: memory_max of its slice and of the
// slices above it. The daemon adds up what all programs in a slice hold, and a limited program asks it before each
// allocation. Memory that the program asks for counts, in bytes; what the driver needs for contexts and code does not.
#pragma once

#include <cuda.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "ipc/stub.h"

namespace gpuslice {

/// Any thread. Calls wait for the daemon unless a comment says otherwise.
class HeldMemory {
 public:
  /// The instance of this process; never destroyed.
  static HeldMemory& get();

  /// Called before an allocation. Returns whether `bytes` more may be held; if so, they count from now on. Of a limited
  /// process the first call after its daemon has gone waits for the next one, as that knows what others were promised:
  /// for as long as it keeps that for them. Where a slice is above its memory_high it waits, for Client::kLongestWait
  /// at most.
  bool take(CUdevice device, std::uint64_t bytes);
  /// The allocation failed, so its bytes no longer count.
  void give_back(CUdevice device, std::uint64_t bytes);

  /// Executable graphs of this process need so much of the device's memory together. Returns whether they may hold it;
  /// if so, that much counts from now on.
  bool take_for_graphs(CUdevice device, std::uint64_t bytes);
  /// They hold so much, as the driver says.
  void set_graphs(CUdevice device, std::uint64_t bytes);
  std::uint64_t of_graphs(CUdevice device) const;

  /// The allocation for which `taken` bytes were taken succeeded, and has `bytes`.
  void allocated(CUdeviceptr address, CUcontext context, CUdevice device, std::uint64_t taken, std::uint64_t bytes);
  struct Allocation {
    CUcontext context = nullptr;
    CUdevice device = 0;
    std::uint64_t bytes = 0;  ///< 0: not known
  };
  /// Called before the memory is freed, since another allocation may get its address right afterwards. Then call
  /// freed(), or restore() if the driver refused.
  Allocation remove(CUdeviceptr address);
  void freed(const Allocation& allocation) { give_back(allocation.device, allocation.bytes); }
  void restore(CUdeviceptr address, const Allocation& allocation);
  /// Everything allocated in a context, or on a device, is gone.
  void forget(CUcontext context);
  void forget_device(CUdevice device);

  /// Reduces what the driver reports about a device to what this process may have.
  void limit(CUdevice device, std::size_t* free, std::size_t* total);

  /// A new stub page is in force. Does not wait.
  void publish();

  /// In a forked child.
  void forget_after_fork();

 private:
  const gpuctl::ipc::Grant* limited(CUdevice device) const;
  void change(CUdevice device, std::uint64_t held);
  template <class Take>
  bool patiently(Take take);
  std::optional<bool> take_locked(CUdevice device, std::uint64_t bytes, bool patient, std::chrono::microseconds& wait);
  template <class Which>
  void forget_if(Which which);

  /// Guards everything; held while the daemon is asked, so that the daemon hears of changes in order.
  mutable std::mutex mutex_;
  std::array<std::uint64_t, gpuctl::ipc::kMaxDevices> held_{};
  std::array<std::uint64_t, gpuctl::ipc::kMaxDevices> of_graphs_{};  ///< part of held_
  std::unordered_map<CUdeviceptr, Allocation> allocations_;
  const gpuctl::ipc::Stub* unanswered_ = nullptr;  ///< the page of a daemon that went, and none came in time
};

/// Frees memory by `call`, and counts that if it succeeds.
template <class Call>
CUresult counted_free(CUdeviceptr address, Call call) {
  HeldMemory& held = HeldMemory::get();
  const HeldMemory::Allocation known = held.remove(address);
  const CUresult result = call();
  if (result == CUDA_SUCCESS) {
    held.freed(known);
  } else {
    held.restore(address, known);
  }
  return result;
}

}  // namespace gpuslice
