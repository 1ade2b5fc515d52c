// The weights of the stencil of FDTD3d by distance, for both sides. Their sum over the stencil is 1.
#pragma once

#include "kernels/problem/rounded.h"

namespace gpuctl::bench {

BENCH_TABLE float kFdtdWeights[5] = {0.4f, 0.06f, 0.02f, 0.015f, 0.005f};

}  // namespace gpuctl::bench
