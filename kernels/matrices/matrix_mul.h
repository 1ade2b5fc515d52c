// The kernel matrixMul: its inputs, and what it must compute. The kernel itself: matrix_mul.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent: rows, columns and inner dimension of the product.
Problem generate_matrix_mul(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_matrix_mul(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
