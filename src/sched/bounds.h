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
/// less the strict and active reserves outside of that path. An active reserve counts even while its slice is idle: its
/// clients may have work at any moment. Weights do not count. At least 1.
std::vector<CapSM> guaranteed(std::span<const NodeInput> nodes, CapSM capacity);

}  // namespace gpuctl::sched
