// The kernel canny: its inputs, and what it must compute. The kernel itself: canny.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent: width and height of the picture.
Problem generate_canny(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_canny(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
