// The launch blocks of one context: device slots and their host twins (src/ptx/persistent_abi.h).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

/// Slots per context: several times what a driver queues (about 1,000 launches per stream). They take 2 MiB on the
/// device, and an eighth of that in mapped host memory.
inline constexpr std::uint32_t kSlots = 4096;

/// Not thread-safe: the mutex of its context guards it, except where said. The context is current in every call that
/// reaches the driver.
class Slots {
 public:
  /// Allocates device and mapped host memory in the current context, and waits until it is zeroed.
  static gpuctl::Result<Slots> create();

  /// Takes a slot whose halves are both zero. Nothing while all slots are in use or dirty.
  std::optional<std::uint32_t> take();
  /// Takes `count` slots at once, at most kSlots / 2. Nothing while fewer are free.
  std::optional<std::vector<std::uint32_t>> take(std::size_t count);

  /// Gives a slot back. `touched`: a kernel may have written to it. Such a slot is zeroed before its next use, but not
  /// before kRestNs have passed, because workers do not wait until their last stores arrive in host memory.
  void give_back(std::uint32_t slot, bool touched);
  static constexpr std::uint64_t kRestNs = 5'000'000;
  /// Tells the current time (CLOCK_MONOTONIC), by which touched slots rest.
  void age(std::uint64_t now_ns);

  /// Whether dirty slots should be zeroed now. If so, the caller takes the list, drops the mutex, and calls zero().
  bool wants_zeroing() const {
    return zeroing_.empty() && (dirty_.size() >= kSlots / 4 || (free_.size() < wanted_ && !dirty_.empty()));
  }

  /// take_dirty() returns the dirty slots, sorted. zero() starts zeroing them on `stream`; only the agent calls it,
  /// without the mutex.
  std::vector<std::uint32_t> take_dirty();
  CUresult zero(const std::vector<std::uint32_t>& sorted, CUstream stream) const;
  /// The slots last returned by take_dirty() are zero and may be used again.
  void zeroed();

  /// Device memory that holds no data.
  CUdeviceptr scratch() const { return device_address(kSlots); }
  static constexpr std::size_t kScratchBytes = 256;

  gpuctl::ptx::HostSlot& host(std::uint32_t slot) const { return memory_.host[slot]; }
  CUdeviceptr device_address(std::uint32_t slot) const {
    return memory_.device + slot * sizeof(gpuctl::ptx::DeviceSlot);
  }
  CUdeviceptr host_address(std::uint32_t slot) const {
    return memory_.host_device + slot * sizeof(gpuctl::ptx::HostSlot);
  }

  /// What kernels poll when there is no stub page or the GPU cannot map it. It lies in the same mapped memory.
  gpuctl::Polled& polled() const { return *memory_.polled; }
  CUdeviceptr polled_address() const { return memory_.polled_device; }

  /// Starts a copy of the slot's DeviceSlot::here on `stream`, for here() and here_outside() to read. `index` is below
  /// kCopies. Only the agent calls it.
  static constexpr std::uint32_t kCopies = 16;
  CUresult copy_here(std::uint32_t index, std::uint32_t slot, CUstream stream) const;
  /// Whether that copy shows workers on SMs outside `range` (gpuctl::pack_range).
  bool here_outside(std::uint32_t index, std::uint32_t range) const;
  /// How many workers that copy shows.
  std::uint32_t here(std::uint32_t index) const;

 private:
  bool zero_all() const;

  using Here = std::uint8_t[gpuctl::kMaxSms];
  /// What create() allocates.
  struct Memory {
    CUdeviceptr device = 0;  ///< of the DeviceSlots
    gpuctl::ptx::HostSlot* host = nullptr;
    CUdeviceptr host_device = 0;
    gpuctl::ptx::DeviceSlot* zeros = nullptr;  ///< kZeros of them, in pinned memory; zero() copies them to the device
    gpuctl::Polled* polled = nullptr;
    CUdeviceptr polled_device = 0;
    Here* here = nullptr;
  } memory_;
  std::vector<std::uint32_t> free_, given_back_, resting_, dirty_, zeroing_;
  std::size_t wanted_ = 1;  ///< how many slots the largest waiting launch needs
  std::uint64_t aged_ns_ = 0;
};

}  // namespace gpuslice
