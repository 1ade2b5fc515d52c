// How many workers a launch has, and could have.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ipc/stub_map.h"
#include "libgpuslice/launch/outstanding.h"

namespace gpuslice {

/// How many workers of the launch fit on this many SMs.
inline std::uint32_t workers_on(const Launch& launch, std::uint32_t sms) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(launch.args.tasks, std::uint64_t{sms} * launch.per_sm));
}

/// Workers launched and not known to have left. Some may still wait for an SM.
inline std::uint32_t present(const Launch& launch, const gpuctl::ptx::HostSlot& host) {
  return launch.launched - std::min(launch.launched, gpuctl::ipc::load(host.left));
}

/// Whether it runs on the GPU now.
inline bool runs(const gpuctl::ptx::HostSlot& host) {
  return gpuctl::ipc::load(host.started) && !gpuctl::ipc::load(host.done);
}

/// Whether workers should be added: not while less than one in sixteen is missing.
inline bool many_missing(std::uint64_t fit, std::uint64_t there) {
  return fit > there && fit - there >= fit / 16;
}

}  // namespace gpuslice
