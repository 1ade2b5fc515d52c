// Where the parts of a device lie that clients have in common (device_decision.h, Common::part). It follows from the
// tree alone, so no part moves when a client comes or goes. Pure.
//
// Reserves have their place at the beginning of the device (handover.h), so parts lie behind it. The part of a slice
// lies within that of the slice above it. Slices beside each other that may have less than what they are in have parts
// beside each other, as far as there is room; else they are spread over it, so that they overlap as little as can be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/allocator.h"

namespace gpuctl::daemon {

/// For each node: the SM with which the part of the clients in it begins. `sizes`: how many SMs these have
/// (sched::guaranteed).
std::vector<std::uint32_t> parts_of(std::span<const sched::NodeInput> nodes, std::span<const sched::CapSM> sizes,
                                    sched::CapSM capacity);

}  // namespace gpuctl::daemon
