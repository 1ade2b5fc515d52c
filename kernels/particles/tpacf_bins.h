// The bins of the kernel tpacf: angles from 1 to 10,000 minutes of arc, five bins to each power of ten, one bin below
// and one above.
#pragma once

#include "kernels/problem/rounded.h"

namespace gpuctl::bench {

inline constexpr unsigned kTpacfEdges = 21;
inline constexpr unsigned kTpacfBins = kTpacfEdges + 1;

/// Edge k is the cosine of 10^(k / 5) minutes. A pair belongs to bin n when its cosine is below just the first n edges.
BENCH_TABLE float kTpacfCosines[kTpacfEdges] = {
    0x1.fffffep-1f, 0x1.fffffcp-1f, 0x1.fffff8p-1f, 0x1.ffffeap-1f, 0x1.ffffc8p-1f, 0x1.ffff72p-1f,  0x1.fffe9cp-1f,
    0x1.fffc80p-1f, 0x1.fff736p-1f, 0x1.ffe9ecp-1f, 0x1.ffc88cp-1f, 0x1.ff74bcp-1f, 0x1.fea244p-1f,  0x1.fc9218p-1f,
    0x1.f76688p-1f, 0x1.ea7d9ap-1f, 0x1.ca8b96p-1f, 0x1.7d4c34p-1f, 0x1.9ac1aep-2f, -0x1.0bc8bep-2f, -0x1.f232f0p-1f,
};

}  // namespace gpuctl::bench
