// What the slices of a tree can have of a device at most, and what each can be sure of, whatever the clients do. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sched/allocator.h"

namespace gpuctl::sched {

/// What a node may have at most: the least max on its path to the root.
CapSM most_of(std::span<const NodeInput> nodes, std::size_t index, CapSM capacity);

/// For each node, how many SMs the clients directly in it can reach: what the maxima on its path allow, without what
/// the strict reserves beside that path keep free always. Reserves of the other modes and weights do not count. At
/// least 1.
std::vector<CapSM> sure_of(std::span<const NodeInput> nodes, CapSM capacity);

}  // namespace gpuctl::sched
