// Adds to *equal how many of `count` words of two arrays are the same. It counts what is equal, so a block that did not
// run shows as well as a word that differs.
namespace {
constexpr unsigned kWordsPerThread = 16;
}

extern "C" __global__ void countEqual(const unsigned* found, const unsigned* expected, unsigned* equal,
                                      unsigned count) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  const unsigned first = blockIdx.x * blockDim.x * kWordsPerThread + threadIdx.x;
  unsigned mine = 0;
  for (unsigned k = 0; k < kWordsPerThread; ++k) {
    const unsigned i = first + k * blockDim.x;
    if (i < count && found[i] == expected[i]) ++mine;
  }
  atomicAdd(&sum, mine);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(equal, sum);
}
