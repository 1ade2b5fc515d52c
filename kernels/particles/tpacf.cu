// Two-point angular correlation: histograms of the angles between points of the sky, given as unit vectors. Catalogue 0
// is observed, the others are random. Of n random catalogues block 0 compares the observed one with itself, blocks 1 to
// n compare it with each random one, and the n blocks that follow compare the random ones with themselves; within one
// catalogue each pair counts once. Points of the second catalogue are staged in shared memory; each warp counts in a
// histogram of its own.
#include "kernels/particles/tpacf_bins.h"
#include "kernels/problem/rounded.h"

using namespace gpuctl::bench;

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;

__device__ unsigned bin_of(float cosine) {
  unsigned low = 0;
  unsigned high = kTpacfEdges;
  while (low < high) {
    const unsigned middle = (low + high) / 2;
    if (cosine < kTpacfCosines[middle]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace

extern "C" __global__ void tpacf(const float* __restrict__ x, const float* __restrict__ y, const float* __restrict__ z,
                                 unsigned* out, unsigned points, unsigned random_catalogues) {
  __shared__ float tile_x[kThreads], tile_y[kThreads], tile_z[kThreads];
  __shared__ unsigned counts[kTpacfBins][kWarps];
  const bool same = blockIdx.x == 0 || blockIdx.x > random_catalogues;
  const unsigned second = (blockIdx.x <= random_catalogues ? blockIdx.x : blockIdx.x - random_catalogues) * points;
  const unsigned first = same ? second : 0;
  const unsigned warp = threadIdx.x / 32;
  for (unsigned i = threadIdx.x; i < kTpacfBins * kWarps; i += kThreads) counts[0][i] = 0;

  for (unsigned begin = 0; begin < points; begin += kThreads) {
    const unsigned tile = points - begin < kThreads ? points - begin : kThreads;
    __syncthreads();
    if (threadIdx.x < tile) {
      tile_x[threadIdx.x] = x[second + begin + threadIdx.x];
      tile_y[threadIdx.x] = y[second + begin + threadIdx.x];
      tile_z[threadIdx.x] = z[second + begin + threadIdx.x];
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < points; i += kThreads) {
      const float here_x = x[first + i];
      const float here_y = y[first + i];
      const float here_z = z[first + i];
      const unsigned from = !same || i < begin ? 0 : i + 1 - begin;
      for (unsigned j = from; j < tile; ++j) {
        const float cosine =
            multiply_add(here_x, tile_x[j], multiply_add(here_y, tile_y[j], multiply(here_z, tile_z[j])));
        atomicAdd(&counts[bin_of(cosine)][warp], 1);
      }
    }
  }
  __syncthreads();
  if (threadIdx.x < kTpacfBins) {
    unsigned sum = 0;
    for (unsigned k = 0; k < kWarps; ++k) sum += counts[threadIdx.x][k];
    out[blockIdx.x * kTpacfBins + threadIdx.x] = sum;
  }
}
