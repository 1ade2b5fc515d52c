// The kernel work: its inputs, and what it must compute. The kernel itself: work.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent.x: blocks of 256 threads; extent.y: iterations of each thread.
Problem generate_work(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_work(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
