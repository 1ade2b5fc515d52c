// Two dependent launches a round: partial sums with an early return before the barriers and dynamic shared memory, then
// one block that adds them up. The second starts before the host knows of the first.
#include "program.h"

__global__ void partialSums(const unsigned* in, unsigned* partial, unsigned count) {
  extern __shared__ unsigned sums[];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  sums[threadIdx.x] = in[i];
  unsigned live = min(blockDim.x, count - blockIdx.x * blockDim.x);
  while (live > 1) {
    const unsigned half = (live + 1) / 2;
    __syncthreads();
    if (threadIdx.x < live - half) sums[threadIdx.x] += sums[threadIdx.x + half];
    live = half;
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}

__global__ void addUp(const unsigned* partial, unsigned* total, unsigned count) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) atomicAdd(&sum, partial[i]);
  __syncthreads();
  if (threadIdx.x == 0) *total = sum;
}

int main(int argc, char** argv) {
  Rounds rounds("reduction", argc, argv);
  constexpr unsigned kThreads = 128;
  const unsigned count = 10'001u * rounds.scale();
  const unsigned blocks = (count + kThreads - 1) / kThreads;
  std::vector<unsigned> numbers(count);
  unsigned expected = 0;
  for (unsigned i = 0; i < count; ++i) {
    numbers[i] = i * 2654435761u;
    expected += numbers[i];
  }

  unsigned* in = nullptr;
  unsigned* partial = nullptr;
  unsigned* total = nullptr;
  CUDA_CHECK(cudaMalloc(&in, count * sizeof(unsigned)));
  CUDA_CHECK(cudaMalloc(&partial, blocks * sizeof(unsigned)));
  CUDA_CHECK(cudaMalloc(&total, sizeof(unsigned)));
  CUDA_CHECK(cudaMemcpy(in, numbers.data(), count * sizeof(unsigned), cudaMemcpyHostToDevice));

  while (rounds.next()) {
    CUDA_CHECK(cudaMemset(partial, 0xff, blocks * sizeof(unsigned)));
    partialSums<<<blocks, kThreads, kThreads * sizeof(unsigned)>>>(in, partial, count);
    addUp<<<1, kThreads>>>(partial, total, blocks);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    unsigned found = 0;
    CUDA_CHECK(cudaMemcpy(&found, total, sizeof found, cudaMemcpyDeviceToHost));
    rounds.compare(&found, &expected, sizeof found);
  }
  CUDA_CHECK(cudaFree(in));
  CUDA_CHECK(cudaFree(partial));
  CUDA_CHECK(cudaFree(total));
  return rounds.finish();
}
