// compat: half precision: single, paired, fused, comparisons, conversions
// soft: yes
#include <cuda_fp16.h>

#include "work.h"

__global__ void compute(std::uint32_t* values, int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  std::uint32_t state = values[i];
  for (int k = 0; k < steps / 8; ++k) {
    state = mix(state + i, 1);
    const __half a = __int2half_rn(static_cast<int>(state % 2000) - 1000), b = __float2half(0.125f * (state >> 24));
    const __half product = __hmul_rn(a, b), sum = __hadd_rn(product, b), fused = __hfma(a, b, sum);
    const __half2 pair = __hfma2(__halves2half2(a, b), __float2half2_rn(0.5f), __halves2half2(sum, fused));
    const __half2 most = __hmax2(pair, __floats2half2_rn(-3.0f, 1.5f));
    state ^= __half_as_ushort(fused) | static_cast<std::uint32_t>(__half_as_ushort(__high2half(pair))) << 16;
    state += __half2int_rd(__low2half(most)) + (__hlt(a, b) ? 3 : 5);
    state ^= __float_as_uint(__half2float(__habs(sum)));
  }
  values[i] = state;
}

int main() {
  const int count = work_threads();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round)
    compute<<<(count + 255) / 256, 256>>>(values, count, scaled(1000, 16));
  CHECK(cudaGetLastError());
  print_device_hash("half", values, count);
}
