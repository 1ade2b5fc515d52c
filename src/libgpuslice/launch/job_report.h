// How launches ended (ipc::Record), for policies for jobs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libgpuslice/client/grant_view.h"
#include "libgpuslice/launch/outstanding.h"
#include "libgpuslice/streams/launch_timer.h"

namespace gpuslice {

/// A duration as the daemon is told of it, in nanoseconds.
inline std::uint32_t whole_ns(double ns) {
  return static_cast<std::uint32_t>(std::clamp(ns, 0.0, 4e9));
}

/// Called under a policy for jobs only. `clock_offset`: the host's clock minus the GPU's. `whole_from_ns`: from when on
/// the launch had the whole device until its end, CLOCK_MONOTONIC; 0: it had only a part, or was disturbed.
void record(const GrantView& view, const Launch& launch, const gpuctl::ptx::HostSlot& host, std::int64_t clock_offset,
            std::uint64_t whole_from_ns);
/// Without a policy for jobs it does nothing. Called without the book's mutex.
void record(const GrantView& view, const TimedLaunch& launch);

}  // namespace gpuslice
