// The kernel spmv: its inputs, and what it must compute. The kernel itself: spmv.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::spmv {

/// extent.x: rows, and columns; extent.y: entries of a row, on average.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::spmv
