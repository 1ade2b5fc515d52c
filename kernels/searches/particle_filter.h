// The kernel particleFilter: its inputs, and what it must compute. The kernel itself: particle_filter.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent: particles and frames.
Problem generate_particle_filter(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_particle_filter(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
