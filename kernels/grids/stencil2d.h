// The kernel stencil2D: its inputs, and what it must compute. The kernel itself: stencil2d.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::stencil2d {

/// extent: columns and rows of the grid, and time steps.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::stencil2d
