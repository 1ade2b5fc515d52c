// How many SMs this program is told that each device has: what its slice can be sure of (ipc::Stub::sure_sms), not what
// its grant is now. Programs keep the answer and size grids, buffers and pools by it, so it is fixed at the first
// question for the life of the process: all answers agree, whatever is set later and whoever comes and goes.
//
// The library itself asks the driver, past the hooks.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "ipc/stub.h"

namespace gpuslice {

/// What is told of one device. Any thread.
class FixedSms {
 public:
  /// Of `real` SMs; `sure`: of how many the slice is sure now, 0: of all. Only the first call looks at it.
  std::uint32_t tell(std::uint32_t sure, std::uint32_t real) {
    std::uint32_t told = told_.load();
    if (told == 0) {
      const std::uint32_t first = sure == 0 ? kAll : sure;
      if (told_.compare_exchange_strong(told, first)) told = first;
    }
    return std::min(told, real);
  }
  /// 0: nobody asked, or the answer is all of them.
  std::uint32_t fewer() const {
    const std::uint32_t told = told_.load();
    return told == kAll ? 0 : told;
  }

 private:
  static constexpr std::uint32_t kAll = 0xffffffff;
  std::atomic<std::uint32_t> told_{0};
};

/// Of `count`, which the driver counted on `real` SMs, the part that `told` of them have: at least 1 if there is any.
constexpr int part_of(int count, std::uint32_t told, std::uint32_t real) {
  if (count <= 0 || told >= real) return count;
  return std::max(1, static_cast<int>(static_cast<std::int64_t>(count) * told / real));
}

class ToldSms {
 public:
  /// The one of this process; never destroyed.
  static ToldSms& get();

  /// What the program is told where the driver says `real`. Waits for nobody.
  std::uint32_t tell(CUdevice device, std::uint32_t real);

  /// A new stub page is in force.
  void publish(gpuctl::ipc::Stub& stub) const;

  /// In a forked child.
  void forget_after_fork();

 private:
  FixedSms devices_[gpuctl::ipc::kMaxDevices];
};

}  // namespace gpuslice
