// The kernel fft: its inputs, and what it must compute. The kernel itself: fft.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent.x: transforms of 512 points each.
Problem generate_fft(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_fft(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
