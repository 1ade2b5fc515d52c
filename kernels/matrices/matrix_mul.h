// The kernel matrixMul: its inputs, and what it must compute. The kernel itself: matrix_mul.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::matrix_mul {

/// extent: rows, columns and inner dimension of the product.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::matrix_mul
