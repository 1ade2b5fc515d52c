// The kernel pathFinder: its inputs, and what it must compute. The kernel itself: path_finder.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::path_finder {

/// extent: columns and rows of the grid.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::path_finder
