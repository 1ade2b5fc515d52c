// The kernel nbody: its inputs, and what it must compute. The kernel itself: nbody.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent.x: bodies.
Problem generate_nbody(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_nbody(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
