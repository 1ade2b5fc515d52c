// Correctly rounded fused multiply-add over arrays, as the GPU's fma.rn.f32 does it: with the CPU's own instruction
// where it has one, else with the C library's exact emulation. Both give the same bits.
#pragma once

#include <cstddef>

namespace gpuctl::bench {

/// sum[i] = scale * values[i] + sum[i], rounded once.
void add_scaled(float* sum, float scale, const float* values, std::size_t count);

/// x[i] = x[i] * scale + addends[i], rounded once.
void scale_and_add(float* x, float scale, const float* addends, std::size_t count);

}  // namespace gpuctl::bench
