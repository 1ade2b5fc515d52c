// The filter of the separable convolution, for both sides: a bell of 17 taps, the same across and down. All are
// positive.
#pragma once

#include "kernels/problem/rounded.h"

namespace gpuctl::bench {

constexpr int kTapsRadius = 8;
BENCH_TABLE float kTaps[2 * kTapsRadius + 1] = {0.002f, 0.007f, 0.018f, 0.036f, 0.06f,  0.086f, 0.108f, 0.122f, 0.122f,
                                                0.122f, 0.108f, 0.086f, 0.06f,  0.036f, 0.018f, 0.007f, 0.002f};

}  // namespace gpuctl::bench
