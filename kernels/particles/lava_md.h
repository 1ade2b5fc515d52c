// The kernel lavaMD: its inputs, and what it must compute. The kernel itself: lava_md.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::lava_md {

/// extent.x: boxes along each of the three sides; extent.y: particles of a box, 128 at most.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::lava_md
