// The kernel work: its inputs, and what it must compute. The kernel itself: work.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::work {

/// extent.x: blocks of 256 threads; extent.y: iterations of each thread.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::work
