#include "fused.h"

#include <cmath>

namespace gpuctl::bench {
namespace {

#if defined(__x86_64__)
[[gnu::target("avx2,fma"), gnu::optimize("O3")]] void add_scaled_native(float* sum, float scale, const float* values,
                                                                        std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = __builtin_fmaf(scale, values[i], sum[i]);
}

[[gnu::target("avx2,fma"), gnu::optimize("O3")]] void scale_and_add_native(float* x, float scale, const float* addends,
                                                                           std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = __builtin_fmaf(x[i], scale, addends[i]);
}

bool has_native() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}
#else
void add_scaled_native(float*, float, const float*, std::size_t) {}
void scale_and_add_native(float*, float, const float*, std::size_t) {}
bool has_native() {
  return false;
}
#endif

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
