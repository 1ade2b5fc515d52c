// The kernel FDTD3d: its inputs, and what it must compute. The kernel itself: fdtd3d.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::fdtd3d {

/// extent: the three dimensions of the volume.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::fdtd3d
