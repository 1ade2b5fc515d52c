// The kernel myocyte: its inputs, and what it must compute. The kernel itself: myocyte.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::myocyte {

/// extent.x: cells; extent.y: simulated time in microseconds.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::myocyte
