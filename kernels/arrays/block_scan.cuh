// Prefix sums over the threads of a block, for kernels: within a warp by shuffles, between warps in shared memory.
#pragma once

namespace gpuctl::bench {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

/// The sum over the lanes of the warp up to this one. Every lane must call it.
__device__ __forceinline__ unsigned inclusive_in_warp(unsigned value) {
  const unsigned lane = threadIdx.x % kWarp;
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const unsigned other = __shfl_up_sync(kAllLanes, value, distance);
    if (lane >= distance) value += other;
  }
  return value;
}

/// The sum over the threads before this one; `total` becomes that over all. Every thread of the one-dimensional block
/// of kThreads must call it; it begins and ends with a barrier.
template <unsigned kThreads>
__device__ __forceinline__ unsigned exclusive_in_block(unsigned value, unsigned& total) {
  constexpr unsigned kWarps = kThreads / kWarp;
  static_assert(kThreads % kWarp == 0 && kWarps <= kWarp);
  __shared__ unsigned ends[kWarps];
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  const unsigned inclusive = inclusive_in_warp(value);
  __syncthreads();
  if (lane == kWarp - 1) ends[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    const unsigned end = inclusive_in_warp(lane < kWarps ? ends[lane] : 0);
    if (lane < kWarps) ends[lane] = end;
  }
  __syncthreads();
  total = ends[kWarps - 1];
  return inclusive - value + (warp == 0 ? 0 : ends[warp - 1]);
}

/// Which words a place's sum counts: those before it, or its own word too.
enum class Sum : bool { kBefore, kUpTo };

/// Turns each word into a sum over the words of its beginning. One block of kThreads does it alone, piece by piece;
/// every thread of it must call this.
template <unsigned kThreads, Sum kSum>
__device__ __forceinline__ void sums_by_one_block(unsigned* words, unsigned count) {
  unsigned before = 0;
  for (unsigned first = 0; first < count; first += kThreads) {
    const unsigned i = first + threadIdx.x;
    const unsigned word = i < count ? words[i] : 0;
    unsigned total = 0;
    const unsigned sum = exclusive_in_block<kThreads>(word, total);
    if (i < count) words[i] = before + sum + (kSum == Sum::kUpTo ? word : 0);
    before += total;
  }
}

}  // namespace gpuctl::bench
