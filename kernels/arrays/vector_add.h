// The kernel vectorAdd: its inputs, and what it must compute. The kernel itself: vector_add.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::vector_add {

/// extent.x: elements.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::vector_add
