// The kernel nearestNeighbor: its inputs, and what it must compute. The kernel itself: nearest_neighbor.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent.x: places.
Problem generate_nearest_neighbor(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_nearest_neighbor(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
