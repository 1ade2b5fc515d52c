// The launch blocks of one context: a ring of device slots and their host twins (src/ptx/persistent_abi.h).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

/// Slots per context: several times what a driver queues (about 1,000 launches a stream). 256 KiB on the device, 512 KiB
/// of mapped host memory.
inline constexpr std::uint32_t kSlots = 4096;

/// Not thread-safe: guarded by the mutex of its context, except where said. The context is current in every call
/// that reaches the driver.
class Slots {
 public:
  /// Allocates device and mapped host memory in the current context.
  static gpuctl::Result<Slots> create();

  /// A slot whose both halves are zero, or nothing while all are in use or dirty.
  std::optional<std::uint32_t> take();

  /// Gives a slot back. `touched`: a kernel may have written it, so it must be zeroed first.
  void give_back(std::uint32_t slot, bool touched);

  /// Dirty slots worth zeroing now? Then the caller takes the list, drops the mutex, and calls zero().
  bool wants_zeroing() const { return zeroing_.empty() && (dirty_.size() >= kSlots / 4 || (free_.empty() && !dirty_.empty())); }

  /// Starts zeroing what take_dirty() returned, on `stream`. Without the mutex; one thread (the agent).
  std::vector<std::uint32_t> take_dirty();
  CUresult zero(const std::vector<std::uint32_t>& sorted, CUstream stream) const;
  /// The slots last taken by take_dirty() are zero again: they may be used.
  void zeroed();

  gpuctl::ptx::HostSlot& host(std::uint32_t slot) const { return host_[slot]; }
  CUdeviceptr device_address(std::uint32_t slot) const { return device_ + slot * sizeof(gpuctl::ptx::DeviceSlot); }
  CUdeviceptr host_address(std::uint32_t slot) const { return host_device_ + slot * sizeof(gpuctl::ptx::HostSlot); }

  /// Words for stream limits, in the same mapped memory. kWords of them.
  static constexpr std::uint32_t kWords = 1024;
  std::uint32_t& word(std::uint32_t index) const { return words_[index]; }
  CUdeviceptr word_address(std::uint32_t index) const { return words_device_ + index * sizeof(std::uint32_t); }

 private:
  CUdeviceptr device_ = 0;
  gpuctl::ptx::HostSlot* host_ = nullptr;
  CUdeviceptr host_device_ = 0;
  gpuctl::ptx::DeviceSlot* zeros_ = nullptr;  ///< kSlots of them, pinned: what zeroing copies to the device
  std::uint32_t* words_ = nullptr;
  CUdeviceptr words_device_ = 0;
  std::vector<std::uint32_t> free_, dirty_, zeroing_;
};

}  // namespace gpuslice
