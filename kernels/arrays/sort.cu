// Stable sorting of (key, value) pairs by their keys, lowest digit of four bits first. Each digit takes three launches:
// how often each digit occurs in each tile of 1024 pairs; one block that turns the counts, digit by digit and within a
// digit tile by tile, into where each goes; and the move itself, for which a tile is first sorted in shared memory, bit
// by bit, so that pairs of the same digit leave it side by side.
#include "kernels/arrays/block_scan.cuh"

namespace {
constexpr unsigned kThreads = 256;
constexpr unsigned kPairsPerThread = 4;
constexpr unsigned kTile = kThreads * kPairsPerThread;
constexpr unsigned kDigitBits = 4;
constexpr unsigned kDigits = 1u << kDigitBits;
}  // namespace

using gpuctl::bench::exclusive_in_block;
using gpuctl::bench::Sum;
using gpuctl::bench::sums_by_one_block;

extern "C" __global__ void sortCount(const uint2* pairs, unsigned* counts, unsigned count, unsigned shift) {
  __shared__ unsigned local[kDigits];
  if (threadIdx.x < kDigits) local[threadIdx.x] = 0;
  __syncthreads();
  const unsigned first = blockIdx.x * kTile;
  for (unsigned i = threadIdx.x; i < kTile && first + i < count; i += kThreads) {
    atomicAdd(&local[pairs[first + i].x >> shift & (kDigits - 1)], 1u);
  }
  __syncthreads();
  if (threadIdx.x >= kDigits) return;
  counts[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}

extern "C" __global__ void sortStarts(unsigned* counts, unsigned entries) {
  constexpr unsigned kScanThreads = 1024;
  sums_by_one_block<kScanThreads, Sum::kBefore>(counts, entries);
}

extern "C" __global__ void sortMove(const uint2* from, const unsigned* starts, uint2* to, unsigned count,
                                    unsigned shift) {
  __shared__ uint2 tile[kTile];
  __shared__ unsigned first_of[kDigits];
  const unsigned first = blockIdx.x * kTile;
  const unsigned left = min(kTile, count - first);
  // What fills the last tile up has the greatest digit and stands last, so it stays last.
  for (unsigned i = threadIdx.x; i < kTile; i += kThreads) tile[i] = i < left ? from[first + i] : make_uint2(~0u, 0);
  __syncthreads();

  for (unsigned bit = shift; bit < shift + kDigitBits; ++bit) {
    uint2 own[kPairsPerThread];
    unsigned zeros = 0;
    for (unsigned i = 0; i < kPairsPerThread; ++i) {
      own[i] = tile[threadIdx.x * kPairsPerThread + i];
      zeros += ~(own[i].x >> bit) & 1;
    }
    unsigned all_zeros = 0;
    unsigned zeros_before = exclusive_in_block<kThreads>(zeros, all_zeros);  // its barriers end the reading of the tile
    for (unsigned i = 0; i < kPairsPerThread; ++i) {
      const bool one = own[i].x >> bit & 1;
      tile[one ? all_zeros + threadIdx.x * kPairsPerThread + i - zeros_before : zeros_before] = own[i];
      zeros_before += !one;
    }
    __syncthreads();
  }

  for (unsigned i = threadIdx.x; i < left; i += kThreads) {
    const unsigned digit = tile[i].x >> shift & (kDigits - 1);
    if (i == 0 || digit != (tile[i - 1].x >> shift & (kDigits - 1))) first_of[digit] = i;
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < left; i += kThreads) {
    const uint2 pair = tile[i];
    const unsigned digit = pair.x >> shift & (kDigits - 1);
    to[starts[digit * gridDim.x + blockIdx.x] + i - first_of[digit]] = pair;
  }
}
