// out = a + scale * b, one element a thread: nothing but memory traffic.
#include "kernels/problem/rounded.h"

using namespace gpuctl::bench;

extern "C" __global__ void triad(const float* a, const float* b, float* out, float scale, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = multiply_add(scale, b[i], a[i]);
}
