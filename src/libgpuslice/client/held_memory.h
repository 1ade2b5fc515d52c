// What this process holds of each device's memory, and whether it may hold more: memory_max of its slice and of those
// above it. The daemon adds up what all programs in there hold; one that is limited asks it before each allocation.
// Counted is memory that the program asks for, in bytes: not what the driver needs for contexts and code.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "ipc/stub.h"

namespace gpuslice {

/// Any thread; waits for the daemon where nothing else is said.
class HeldMemory {
 public:
  /// The one of this process; never destroyed.
  static HeldMemory& get();

  /// Before an allocation: whether `bytes` more may be held. If so they count from now on.
  bool take(CUdevice device, std::uint64_t bytes);
  /// They came to nothing.
  void give_back(CUdevice device, std::uint64_t bytes);

  /// The allocation that `taken` bytes were taken for succeeded and has `bytes`.
  void allocated(CUdeviceptr address, CUcontext context, CUdevice device, std::uint64_t taken, std::uint64_t bytes);
  struct Allocation {
    CUcontext context = nullptr;
    CUdevice device = 0;
    std::uint64_t bytes = 0;  ///< 0: it is not known
  };
  /// Before it is freed, since its address can be another's right afterwards. Then freed(), or restore() if the driver
  /// refused.
  Allocation remove(CUdeviceptr address);
  void freed(const Allocation& allocation) { give_back(allocation.device, allocation.bytes); }
  void restore(CUdeviceptr address, const Allocation& allocation);
  /// All that was allocated in a context, or on a device, is gone.
  void forget(CUcontext context);
  void forget_device(CUdevice device);

  /// What the driver says about a device, lessened to what this process may have.
  void limit(CUdevice device, std::size_t* free, std::size_t* total);

  /// A new stub page is in force. Waits for nobody.
  void publish();

  /// In a forked child.
  void forget_after_fork();

 private:
  const gpuctl::ipc::Grant* limited(CUdevice device) const;
  void change(CUdevice device, std::uint64_t held);
  template <class Which>
  void forget_if(Which which);

  std::mutex mutex_;  ///< guards all; held while the daemon is asked, so that it hears of changes in their order
  std::array<std::uint64_t, gpuctl::ipc::kMaxDevices> held_{};
  std::unordered_map<CUdeviceptr, Allocation> allocations_;
};

/// Frees by `call`, and counts that.
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
