// How many SMs of a device a slice can have at most, and how many are guaranteed to it whatever the clients do. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sched/allocator.h"

namespace gpuctl::sched {

/// What a node may have at most: the least max on its path to the root.
CapSM most_of(std::span<const NodeInput> nodes, std::size_t index, CapSM capacity);

/// For each node: how many SMs the clients directly in it can always reach. This is what the maxima on its path allow,
/// less what the strict reserves outside of that path keep free. Reserves of the other modes and weights do not count.
/// At least 1.
std::vector<CapSM> guaranteed(std::span<const NodeInput> nodes, CapSM capacity);

}  // namespace gpuctl::sched
