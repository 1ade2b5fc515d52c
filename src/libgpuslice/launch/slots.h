// The launch blocks of one context: a ring of device slots and their host twins (src/ptx/persistent_abi.h).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

/// Slots per context: several times what a driver queues (about 1,000 launches a stream). 2 MiB on the device, an
/// eighth of that in mapped host memory.
inline constexpr std::uint32_t kSlots = 4096;

/// Not thread-safe: guarded by the mutex of its context, except where said. The context is current in every call
/// that reaches the driver.
class Slots {
 public:
  /// Allocates device and mapped host memory in the current context, and waits until it is zero.
  static gpuctl::Result<Slots> create();

  /// A slot whose both halves are zero, or nothing while all are in use or dirty.
  std::optional<std::uint32_t> take();
  /// So many at once, at most kSlots / 2, or nothing while fewer are there.
  std::optional<std::vector<std::uint32_t>> take(std::size_t count);

  /// Gives a slot back. `touched`: a kernel may have written it, so it must be zeroed first, after kRestNs: workers do
  /// not wait for their last stores to the host to arrive.
  void give_back(std::uint32_t slot, bool touched);
  static constexpr std::uint64_t kRestNs = 5'000'000;
  /// Lets time pass, to a CLOCK_MONOTONIC time.
  void age(std::uint64_t now_ns);

  /// Dirty slots worth zeroing now? Then the caller takes the list, drops the mutex, and calls zero().
  bool wants_zeroing() const {
    return zeroing_.empty() && (dirty_.size() >= kSlots / 4 || (free_.size() < wanted_ && !dirty_.empty()));
  }

  /// Starts zeroing what take_dirty() returned, on `stream`. Without the mutex; one thread (the agent).
  std::vector<std::uint32_t> take_dirty();
  CUresult zero(const std::vector<std::uint32_t>& sorted, CUstream stream) const;
  /// The slots last taken by take_dirty() are zero again: they may be used.
  void zeroed();

  /// Device memory that is of no use to anybody.
  CUdeviceptr scratch() const { return device_address(kSlots); }
  static constexpr std::size_t kScratchBytes = 256;

  gpuctl::ptx::HostSlot& host(std::uint32_t slot) const { return host_[slot]; }
  CUdeviceptr device_address(std::uint32_t slot) const { return device_ + slot * sizeof(gpuctl::ptx::DeviceSlot); }
  CUdeviceptr host_address(std::uint32_t slot) const { return host_device_ + slot * sizeof(gpuctl::ptx::HostSlot); }

  /// What kernels poll where there is no stub page, or the GPU cannot map it; in the same mapped memory.
  gpuctl::Polled& polled() const { return *polled_; }
  CUdeviceptr polled_address() const { return polled_device_; }

  /// Starts copying DeviceSlot::here of a slot, on `stream`, to where here() finds it. `index` below kCopies. The
  /// agent.
  static constexpr std::uint32_t kCopies = 16;
  CUresult copy_here(std::uint32_t index, std::uint32_t slot, CUstream stream) const;
  /// Whether that copy says that there are workers on SMs outside of a range (gpuctl::pack_range).
  bool here_outside(std::uint32_t index, std::uint32_t range) const;
  /// How many workers it says there are.
  std::uint32_t here(std::uint32_t index) const;

 private:
  bool zero_all() const;

  CUdeviceptr device_ = 0;
  gpuctl::ptx::HostSlot* host_ = nullptr;
  CUdeviceptr host_device_ = 0;
  using Here = std::uint8_t[gpuctl::kMaxSms];
  gpuctl::ptx::DeviceSlot* zeros_ = nullptr;  ///< kZeros of them, pinned: what zeroing copies to the device
  gpuctl::Polled* polled_ = nullptr;
  CUdeviceptr polled_device_ = 0;
  Here* here_ = nullptr;
  std::vector<std::uint32_t> free_, given_back_, resting_, dirty_, zeroing_;
  std::size_t wanted_ = 1;  ///< how many somebody waits for
  std::uint64_t aged_ns_ = 0;
};

}  // namespace gpuslice
