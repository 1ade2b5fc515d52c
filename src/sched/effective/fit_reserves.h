// What is in force of reserves on a device that is too small for them. Settings hold for every device, and a
// configuration for machines that it was not written on. Pure.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sched/allocator.h"
#include "sched/slices.h"

namespace gpuctl::sched {

/// Bounds the reserves by what the device has: slices have theirs in the order of the nodes, each as much as those
/// before it leave of that of the slice above. Nothing changes where all fit.
void fit_reserves(std::span<NodeInput> nodes, CapSM device);

/// Path, and a line for a person, of each reserve of which less is in force on the device than is set. `nodes` are in
/// the order of `slices`. `name`: what to call the device.
std::vector<std::pair<std::string, std::string>> unfit_reserves(const Slices& slices, std::span<const NodeInput> nodes,
                                                                CapSM device, const std::string& name);

}  // namespace gpuctl::sched
