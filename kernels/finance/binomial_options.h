// The kernel binomialOptions: its inputs, and what it must compute. The kernel itself: binomial_options.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::binomial_options {

/// extent.x: options; extent.y: time steps, 2047 at most.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::binomial_options
