// compat: bfloat16: single, paired, fused, comparisons, conversions
// soft: yes
#include <cuda_bf16.h>

#include "work.h"

__global__ void compute(std::uint32_t* values, int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  std::uint32_t state = values[i];
  for (int k = 0; k < steps / 8; ++k) {
    state = mix(state + i, 1);
    const __nv_bfloat16 a = __int2bfloat16_rn(static_cast<int>(state % 2000) - 1000);
    const __nv_bfloat16 b = __float2bfloat16(0.125f * (state >> 24));
    const __nv_bfloat16 product = __hmul_rn(a, b), sum = __hadd_rn(product, b), fused = __hfma(a, b, sum);
    const __nv_bfloat162 pair =
        __hfma2(__halves2bfloat162(a, b), __float2bfloat162_rn(0.5f), __halves2bfloat162(sum, fused));
    state ^= __bfloat16_as_ushort(fused) | static_cast<std::uint32_t>(__bfloat16_as_ushort(__high2bfloat16(pair)))
                                               << 16;
    state += __hlt(a, b) ? 3 : 5;
    state ^= __float_as_uint(__bfloat162float(__hmax(sum, a)));
  }
  values[i] = state;
}

int main() {
  const int count = work_threads();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round)
    compute<<<(count + 255) / 256, 256>>>(values, count, scaled(1000, 16));
  CHECK(cudaGetLastError());
  print_device_hash("bfloat16", values, count);
}
