// partial[block] = sum of the block's 1024 words of `in`, modulo 2^32. The threads of the last block that have no
// word return before the barriers, so the barriers of the loop are met by fewer threads than the block has.
namespace {
constexpr unsigned kThreads = 256;
constexpr unsigned kWordsPerThread = 4;
}  // namespace

extern "C" __global__ void reduction(const unsigned* in, unsigned* partial, unsigned count) {
  __shared__ unsigned sums[kThreads];
  const unsigned first = blockIdx.x * kThreads * kWordsPerThread;
  const unsigned left = count - first;
  if (threadIdx.x >= left) return;

  unsigned sum = 0;
  for (unsigned i = 0; i < kWordsPerThread; ++i) {
    const unsigned at = i * kThreads + threadIdx.x;
    if (at < left) sum += in[first + at];
  }
  sums[threadIdx.x] = sum;
  for (unsigned live = left < kThreads ? left : kThreads; live > 1;) {
    const unsigned half = (live + 1) / 2;
    __syncthreads();
    if (threadIdx.x < live - half) sums[threadIdx.x] += sums[threadIdx.x + half];
    live = half;
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}
