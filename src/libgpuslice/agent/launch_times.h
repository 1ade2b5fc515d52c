// When launches ran, and what their block-tasks took.
#pragma once

#include <cstdint>

#include "libgpuslice/agent/clock_offset.h"
#include "libgpuslice/launch/outstanding.h"

namespace gpuslice {

/// One thread. Times are CLOCK_MONOTONIC.
class LaunchTimes {
 public:
  /// A launch that was seen complete at `now_ns`.
  void add(const Launch& launch, const gpuctl::ptx::HostSlot& host, std::uint64_t now_ns);
  /// The host's clock minus the GPU's.
  std::int64_t clock_offset() const { return clocks_.ns(); }

  /// From when on a launch had the same workers until its end, and on how many SMs.
  struct Stretch {
    std::uint64_t from_ns = 0;  ///< 0: the launch was disturbed, or this is not known
    std::uint32_t sms = 0;
  };
  /// A launch that was granted nothing when it was issued had only its holder, until the agent sent all other workers.
  Stretch undisturbed_stretch(const Launch& launch, const gpuctl::ptx::HostSlot& host) const;

  /// Follows how many workers a running launch has. `allowed`: range of SMs.
  void watch_work(Launch& launch, const gpuctl::ptx::HostSlot& host, std::uint32_t allowed) const;

  /// How long a worker takes for one block-task, as an average over all block-tasks, whether the launch was disturbed
  /// or not. If the agent did not see the launch run, this is what one leader measured. Its warp may be favoured or
  /// starved on its SM, so that can be off by a factor of ten.
  double task_time(const Launch& launch, const gpuctl::ptx::HostSlot& host, const Stretch& stretch) const;

 private:
  std::uint64_t on_host(std::uint64_t gpu_ns) const { return gpu_ns + static_cast<std::uint64_t>(clocks_.ns()); }

  ClockOffset clocks_;
};

}  // namespace gpuslice
