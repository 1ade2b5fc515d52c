// The kernel blackScholes: its inputs, and what it must compute. The kernel itself: black_scholes.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent.x: options.
Problem generate_black_scholes(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_black_scholes(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
