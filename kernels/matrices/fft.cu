// Fourier transforms of 512 complex points, one a block of 64 threads. 512 = 8 x 8 x 8: each thread transforms eight
// points three times, and between these the points change threads through shared memory. `roots` holds the 512th roots
// of one, e^(-2 pi i k / 512) for k from 0.
#include "kernels/matrices/fft_radix8.h"

namespace {
using namespace gpuctl::bench;

constexpr unsigned kPoints = 512;
constexpr unsigned kThreads = kPoints / 8;

/// Gives every thread the points at[first + j * stride].
__device__ __forceinline__ void exchange(Complex (&values)[8], Complex* at, unsigned to, unsigned to_stride,
                                         unsigned first, unsigned stride) {
  __syncthreads();
  for (unsigned j = 0; j < 8; ++j) at[to + j * to_stride] = values[j];
  __syncthreads();
  for (unsigned j = 0; j < 8; ++j) values[j] = at[first + j * stride];
}
}  // namespace

extern "C" __global__ void fft(const Complex* in, const Complex* roots, Complex* out) {
  __shared__ Complex shared[kPoints];
  const unsigned thread = threadIdx.x;
  const unsigned high = thread / 8;
  const unsigned low = thread % 8;
  in += blockIdx.x * kPoints;
  out += blockIdx.x * kPoints;

  Complex values[8];
  for (unsigned j = 0; j < 8; ++j) values[j] = in[thread + j * kThreads];
  transform8(values);
  for (unsigned k = 1; k < 8; ++k) values[k] = multiply(values[k], roots[thread * k]);
  exchange(values, shared, thread, kThreads, high * kThreads + low, 8);
  transform8(values);
  for (unsigned k = 1; k < 8; ++k) values[k] = multiply(values[k], roots[low * k * 8]);
  exchange(values, shared, high * kThreads + low, 8, low * kThreads + high * 8, 1);
  transform8(values);
  for (unsigned k = 0; k < 8; ++k) out[thread + k * kThreads] = values[k];
}
