// compat: the occupancy functions answer for the original kernel, and grids made by them work
#include "work.h"

__global__ void plain(std::uint32_t* values, int count, int steps) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    values[i] = mix(values[i] + i, steps);
  }
}

__global__ void with_memory(std::uint32_t* values, int count, int steps) {
  extern __shared__ std::uint32_t dynamic[];
  __shared__ std::uint32_t fixed[2000];
  fixed[threadIdx.x] = dynamic[threadIdx.x] = mix(blockIdx.x, steps);
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += fixed[threadIdx.x ^ 1] + dynamic[threadIdx.x ^ 2];
}

struct WordEach {
  __host__ __device__ std::size_t operator()(int threads) const { return threads * sizeof(std::uint32_t); }
};

int main() {
  for (const int threads : {32, 96, 128, 256, 512, 1000, 1024}) {
    int a = 0, b = 0, c = 0;
    std::size_t room = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&a, plain, threads, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&b, with_memory, threads, 20000));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&c, with_memory, threads, 40000,
                                                                 cudaOccupancyDisableCachingOverride));
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&room, with_memory, 2, threads));
    std::printf("%d threads: %d %d %d room %zu\n", threads, a, b, c, room);
  }
  int grid = 0, block = 0, block_with_memory = 0, per_sm = 0;
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, plain, block, 0));
  must(grid > 0 && grid % per_sm == 0, "the grid is a number of full SMs");
  const int count = work_threads();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) plain<<<grid, block>>>(values, count, work_steps());
  int ignored = 0;
  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&ignored, &block_with_memory, with_memory, WordEach(), 512));
  std::printf("block %d, with memory %d\n", block, block_with_memory);
  with_memory<<<(count + 511) / 512, 512, 2048>>>(values, count, work_steps());
  CHECK(cudaGetLastError());
  print_device_hash("values", values, count);
}
