// How many SMs this program is told that each device has: those that its slice can be sure of
// (ipc::Stub::guaranteed_sms), not its current grant. Programs keep the answer and size grids, buffers and pools by it.
// So the first question fixes it for the life of the process: all answers agree, whatever is set later and whichever
// clients come and go.
//
// The library itself asks the driver directly, without the hooks.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "ipc/stub.h"
#include "libgpuslice/base/sm_groups.h"

namespace gpuslice {

/// The answer for one device. Any thread.
class FixedSms {
 public:
  /// The answer for a device of `real` SMs. `sure`: how many SMs are guaranteed to the slice now; 0: all. `last`: they
  /// are the device's last ones. Only the first call uses these two. The answer is what a part of the device of so many
  /// SMs has (sm_groups.h).
  std::uint32_t tell(std::uint32_t sure, std::uint32_t real, bool last = false) {
    std::uint32_t told = told_.load();
    if (told == 0) {
      const std::uint32_t part = last ? in_last_groups(sure, real) : in_whole_groups(sure, real);
      const std::uint32_t first = sure == 0 || part >= real ? kAll : part;
      if (told_.compare_exchange_strong(told, first)) told = first;
    }
    return std::min(told, real);
  }
  /// The fixed answer, if it is fewer than the driver says; 0: it is all of these, or the program has not asked.
  std::uint32_t fewer() const {
    const std::uint32_t told = told_.load();
    return told == kAll ? 0 : told;
  }

 private:
  static constexpr std::uint32_t kAll = 0xffffffff;
  std::atomic<std::uint32_t> told_{0};
};

/// Scales `count`, which the driver counted on `real` SMs, to `told` SMs. At least 1 if `count` is.
constexpr int part_of(int count, std::uint32_t told, std::uint32_t real) {
  if (count <= 0 || told >= real) return count;
  return std::max(1, static_cast<int>(static_cast<std::int64_t>(count) * told / real));
}

class ToldSms {
 public:
  /// The instance of this process; never destroyed.
  static ToldSms& get();

  /// What the program is told where the driver says `real`. Does not wait.
  std::uint32_t tell(CUdevice device, std::uint32_t real);

  /// What the program was told; `real` if it has not asked. Fixes nothing.
  std::uint32_t told(CUdevice device, std::uint32_t real) const;

  /// A new stub page is in force.
  void publish(gpuctl::ipc::Stub& stub) const;

  /// In a forked child.
  void forget_after_fork();

 private:
  FixedSms devices_[gpuctl::ipc::kMaxDevices];
};

}  // namespace gpuslice
