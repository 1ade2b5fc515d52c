// The kernel tpacf: its inputs, and what it must compute. The kernel itself: tpacf.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench {

/// extent.x: points of a catalogue; extent.y: random catalogues.
Problem generate_tpacf(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference_tpacf(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench
