// compat: both 8-bit floating-point formats: conversions from and to float and half, every value of them
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "work.h"

__global__ void all_values(float* e4m3, float* e5m2) {
  const int i = threadIdx.x;
  __nv_fp8_e4m3 a;
  __nv_fp8_e5m2 b;
  a.__x = b.__x = static_cast<unsigned char>(i);
  e4m3[i] = (i & 0x7f) == 0x7f ? 0.0f : static_cast<float>(a);  // not the one that is no number
  e5m2[i] = (i & 0x7f) > 0x7b ? 0.0f : static_cast<float>(b);
}

__global__ void compute(std::uint32_t* values, int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  std::uint32_t state = values[i];
  for (int k = 0; k < steps / 8; ++k) {
    state = mix(state + i, 1);
    const float x = (static_cast<int>(state % 4001) - 2000) * 0.25f;
    const __nv_fp8_e4m3 a(x);
    const __nv_fp8_e5m2 b(x);
    const __nv_fp8x2_e4m3 two(make_float2(x, static_cast<float>(b)));
    const float2 back = static_cast<float2>(two);
    state ^= a.__x | b.__x << 8 | static_cast<std::uint32_t>(two.__x) << 16;
    state += __float_as_uint(__fmul_rn(static_cast<float>(a), 2.0f)) ^ __float_as_uint(__fadd_rn(back.x, back.y));
    state ^= __half_as_ushort(static_cast<__half>(a));
  }
  values[i] = state;
}

int main() {
  float *e4m3 = zeros<float>(256), *e5m2 = zeros<float>(256);
  all_values<<<1, 256>>>(e4m3, e5m2);
  const std::vector<float> values_e4m3 = on_host(e4m3, 256);
  std::printf("%g %g %g %g\n", values_e4m3[0x38], values_e4m3[0x7e], values_e4m3[0x01], on_host(e5m2, 256)[0x7b]);
  print_device_hash("e4m3", e4m3, 256);
  print_device_hash("e5m2", e5m2, 256);
  const int count = work_threads();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round)
    compute<<<(count + 255) / 256, 256>>>(values, count, scaled(1000, 16));
  CHECK(cudaGetLastError());
  print_device_hash("fp8", values, count);
}
