#include "kernels/problem/fused.h"

#include <cmath>

#include "kernels/problem/native.h"

namespace gpuctl::bench {
namespace {

BENCH_NATIVE void add_scaled_native(float* sum, float scale, const float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = __builtin_fmaf(scale, values[i], sum[i]);
}

BENCH_NATIVE void scale_and_add_native(float* x, float scale, const float* addends, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = __builtin_fmaf(x[i], scale, addends[i]);
}

}  // namespace

void add_scaled(float* sum, float scale, const float* values, std::size_t count) {
  if (has_native()) return add_scaled_native(sum, scale, values, count);
  for (std::size_t i = 0; i < count; ++i) sum[i] = std::fma(scale, values[i], sum[i]);
}

void scale_and_add(float* x, float scale, const float* addends, std::size_t count) {
  if (has_native()) return scale_and_add_native(x, scale, addends, count);
  for (std::size_t i = 0; i < count; ++i) x[i] = std::fma(x[i], scale, addends[i]);
}

}  // namespace gpuctl::bench
