// compat: reductions in blocks of which threads, warps and whole blocks return early
// soft: yes
#include "work.h"

/// Sums the block's values; the block's last, incomplete part takes part with zeros.
__device__ std::uint32_t block_sum(std::uint32_t value) {
  __shared__ std::uint32_t sums[32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return 0;
  value = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0;
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  return value;
}

__global__ void reduce(std::uint32_t* sums, int count, int steps, int round) {
  if (blockIdx.x % 5 == round % 5) return;  // a whole block
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t sum = block_sum(i < count ? mix(i + round, steps) : 0);
  if (threadIdx.x != 0) return;
  if (sum % 7 == 0) return;
  sums[blockIdx.x] = sums[blockIdx.x] * 3 + sum;
}

/// Threads that are done leave; the others go on to meet at barriers.
__global__ void leave(std::uint32_t* sums, int steps) {
  __shared__ std::uint32_t cells[256];
  cells[threadIdx.x] = mix(sums[blockIdx.x] + threadIdx.x, steps);
  __syncthreads();
  for (int left = 128; left >= 32; left /= 2) {
    if (threadIdx.x >= left) return;
    cells[threadIdx.x] ^= cells[threadIdx.x + left] * 3;
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = cells[0] + cells[31];
}

int main() {
  const int count = work_threads() - 77, blocks = (count + 255) / 256;
  std::uint32_t* sums = zeros<std::uint32_t>(blocks);
  for (int round = 0; round < work_rounds(); ++round) {
    reduce<<<blocks, 256>>>(sums, count, work_steps(), round);
    leave<<<blocks, 256>>>(sums, work_steps());
  }
  CHECK(cudaGetLastError());
  print_device_hash("sums", sums, blocks);
}
