// The kernel triad: its inputs, and what it must compute. The kernel itself: triad.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent.x: elements.
Problem generate_triad(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_triad(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
