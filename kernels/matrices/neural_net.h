// The kernel neuralNet: its inputs, and what it must compute. The kernel itself: neural_net.cu.
#pragma once

#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::neural_net {

/// extent: samples, inputs of each, and neurons of a hidden layer.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::neural_net
