// A discrete-event simulation of devices under a temporal policy. It uses the daemon's own policy objects and
// Scheduler, with a model of the device in place of a GPU. Pure and deterministic: the same workload, policy and seed
// give the same result on every machine with IEEE arithmetic and this standard library.
//
// The device model. A job progresses in proportion to the CapSM it holds (or as its curve says), undisturbed by its
// neighbours but for the issue slots of the SMs: if jobs together need more of these than there are, those that need
// any are slowed down alike. SMs that are taken away run on for one block-task, in which on average half a block-task's
// work still gets done. Then they are of no use for as long as the eviction cost. A job that had no SMs starts to work
// on new ones only after the time of a dispatch. A job whose block-tasks are all claimed is not evicted. An application
// that names no device is placed, when it starts, on the device with the least predicted work outstanding.
//
// Isolated applications have a context of the device each, and all others share one. Each context has a policy of its
// own for the whole device; contexts take turns (turns.h), and stand still meanwhile.
#pragma once

#include <functional>

#include "sched/metrics.h"
#include "sched/simulator/outcome.h"
#include "sched/simulator/workload.h"

namespace gpuctl::sched {

/// Makes the policy of one context of a device; each application is a slice.
using PolicyMaker = std::function<std::unique_ptr<JobPolicy>(const PolicyInputs&)>;

Outcome simulate(const Workload& workload, const PolicyMaker& make_policy, std::uint64_t seed);

/// Over all launches; the turnaround is finished - arrived.
Metrics measure(const Outcome& outcome);

}  // namespace gpuctl::sched
