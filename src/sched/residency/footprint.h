// What a job takes of an SM, by how much it was granted. Where kernels share each SM by capacity, a grant of n of a
// device's SMs is n times the workers that one SM holds, spread evenly over all SMs.
#pragma once

#include <span>

#include "sched/capsm.h"
#include "sched/residency/sm_limits.h"

namespace gpuctl::sched {

/// A job's kernels. The blocks belong to the caller.
struct Footprint {
  /// Of each kernel that it may be running. Empty: not known, and then a part of an SM is that part of everything that
  /// the SM has, because no kernel takes more.
  std::span<const BlockShape> blocks;
  CapSM kept{};  ///< so many of its SMs are a reserve: they count as if its kernels were not known
};

/// Of a job that runs one kernel.
inline Footprint footprint_of(const BlockShape& block) {
  return {.blocks = {&block, 1}};
}

/// What the job takes of an SM that has most of its workers, if it has `granted` of `sms` SMs by capacity. Of several
/// kernels the one that takes most counts, resource by resource: they share what the job was granted.
SmUse use_of(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms);

/// The same of an SM that has fewest of its workers.
SmUse least_use_of(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms);

/// Whether an SM holds a worker of each of its kernels where the job has fewest and others take `beside`. A kernel that
/// has a worker on every SM in any case has found room for it.
bool finds_room(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms, const SmUse& beside);

/// The least amount with which it still has, of each of its kernels, all workers but one of those that it has on every
/// SM. `granted` if that would leave none of a kernel, or if its kernels are not known.
CapSM one_worker_less(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms);

/// The next amount above `granted` that is worth a try: the greatest with which it takes no more of an SM than it does
/// now, or else the greatest with which one of its kernels has one worker more there.
CapSM next_amount(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms);

}  // namespace gpuctl::sched
