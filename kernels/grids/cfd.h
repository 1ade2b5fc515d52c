// The kernel cfd: its inputs, and what it must compute. The kernel itself: cfd.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent.x: cells.
Problem generate_cfd(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_cfd(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
