// The kernel spmv: its inputs, and what it must compute. The kernel itself: spmv.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent.x: rows, and columns; extent.y: entries of a row, on average.
Problem generate_spmv(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_spmv(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
