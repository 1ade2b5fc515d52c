// Exclusive prefix sums of words, modulo 2^32, in three launches: the sum of each tile of 2048 words; one block that
// turns these into sums over all tiles before; and in each tile the sums of its own words on top of that.
#include "kernels/arrays/block_scan.cuh"

namespace {
constexpr unsigned kThreads = 256;
constexpr unsigned kWordsPerThread = 8;
constexpr unsigned kTile = kThreads * kWordsPerThread;
}  // namespace

using gpuctl::bench::exclusive_in_block;
using gpuctl::bench::kAllLanes;
using gpuctl::bench::kWarp;
using gpuctl::bench::Sum;
using gpuctl::bench::sums_by_one_block;

extern "C" __global__ void scanReduce(const unsigned* in, unsigned* sums, unsigned count) {
  __shared__ unsigned warp_sums[kThreads / kWarp];
  const unsigned first = blockIdx.x * kTile;
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < kTile && first + i < count; i += kThreads) sum += in[first + i];
  for (unsigned distance = kWarp / 2; distance != 0; distance /= 2) {
    sum += __shfl_down_sync(kAllLanes, sum, distance);
  }
  if (threadIdx.x % kWarp == 0) warp_sums[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x >= kThreads / kWarp) return;
  sum = warp_sums[threadIdx.x];
  for (unsigned distance = kThreads / kWarp / 2; distance != 0; distance /= 2) {
    sum += __shfl_down_sync((1u << kThreads / kWarp) - 1, sum, distance);
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void scanTop(unsigned* sums, unsigned count) {
  sums_by_one_block<kThreads, Sum::kBefore>(sums, count);
}

extern "C" __global__ void scanBottom(const unsigned* in, const unsigned* sums, unsigned* out, unsigned count) {
  __shared__ unsigned tile[kTile];
  const unsigned first = blockIdx.x * kTile;
  const unsigned left = min(kTile, count - first);
  for (unsigned i = threadIdx.x; i < kTile; i += kThreads) tile[i] = i < left ? in[first + i] : 0;
  __syncthreads();
  unsigned own[kWordsPerThread];
  unsigned sum = 0;
  for (unsigned i = 0; i < kWordsPerThread; ++i) {
    own[i] = sum;
    sum += tile[threadIdx.x * kWordsPerThread + i];
  }
  unsigned total = 0;
  const unsigned before = sums[blockIdx.x] + exclusive_in_block<kThreads>(sum, total);
  for (unsigned i = 0; i < kWordsPerThread; ++i) tile[threadIdx.x * kWordsPerThread + i] = before + own[i];
  __syncthreads();
  for (unsigned i = threadIdx.x; i < left; i += kThreads) out[first + i] = tile[i];
}
