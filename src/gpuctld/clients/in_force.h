// What is in force for a client on a device: why its kernels must be able to give SMs back while they run. If nothing
// is in force they keep their original form, and only the GPU's own scheduling of blocks, by priority, applies. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gpuctld/config/config.h"
#include "sched/allocator.h"

namespace gpuctl::daemon {

enum class InForce {
  nothing,
  quota,    ///< its slice, or one above it, has a quota
  max,      ///< its slice, or one above it, may not have the whole device
  reserve,  ///< SMs are kept, or may be wanted back, for a slice that it is not in
  weights,  ///< it competes with slices of another weight
  jobs,     ///< it takes turns under a policy for jobs, or its launches are recorded
  storm,    ///< gpuctld --evict-storm
  always,   ///< the administrator wants all kernels preemptible
};

/// The name that `gpuctl show` and JSON use.
std::string_view name_of(InForce what);

/// A client of the device.
struct Resident {
  std::uint32_t node = 0;     ///< its slice
  bool reports_jobs = false;  ///< it must report its launches (ipc::Grant::jobs)
  bool capped = false;        ///< MPS keeps it to a part of the device, whichever SMs these are
  bool takes_turns = false;   ///< under a policy for jobs
};

struct DeviceConditions {
  sched::CapSM capacity{};
  bool time_sliced = false;  ///< clients are never on the device at the same time: only their own limits matter
  bool storms = false;
  const DaemonOptions* options = &kDefaultOptions;  ///< those that the scheduler holds
};

/// One entry for each of `clients`: the first reason in the order above, except that storms come before all, and a
/// policy for jobs before weights.
std::vector<InForce> what_is_in_force(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                                      const DeviceConditions& where);

/// By client.
struct Reasons {
  std::vector<InForce> first;  ///< as of what_is_in_force()
  /// Whether maxima and the reserves of others are all that is in force for it, and it has no part in a reserve itself.
  std::vector<bool> bounds_alone;
};
Reasons reasons_in_force(std::span<const sched::NodeInput> nodes, std::span<const Resident> clients,
                         const DeviceConditions& where);

}  // namespace gpuctl::daemon
