// compat: static, extern and opted-in dynamic shared memory of several sizes
// soft: yes
#include "work.h"

/// Sums what the block's threads left in `words` words of dynamic shared memory, read in another order.
__global__ void turn(std::uint32_t* values, int words, int steps) {
  extern __shared__ std::uint32_t dynamic[];
  __shared__ std::uint32_t fixed[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  fixed[threadIdx.x] = mix(values[i] + i, steps);
  for (int k = threadIdx.x; k < words; k += blockDim.x) dynamic[k] = k * 2654435761u + blockIdx.x;
  __syncthreads();
  std::uint32_t sum = fixed[255 - threadIdx.x];
  for (int k = threadIdx.x; k < words; k += blockDim.x) sum = sum * 31 + dynamic[words - 1 - k];
  values[i] = sum;
}

__global__ void fixed_only(std::uint32_t* values, int steps) {
  __shared__ std::uint32_t fixed[12 * 1024];  // 48 KiB
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = threadIdx.x; k < 12 * 1024; k += blockDim.x) fixed[k] = mix(k + blockIdx.x, 2);
  __syncthreads();
  values[i] = mix(values[i] + fixed[(i * 37) % (12 * 1024)], steps);
}

int main() {
  const int blocks = scaled(1024, 8), rounds = scaled(60, 1), steps = work_steps();
  std::uint32_t* values = zeros<std::uint32_t>(blocks * 256);
  for (const int bytes : {0, 4, 1000, 16 * 1024, 47 * 1024, 100 * 1024, 226 * 1024}) {
    CHECK(cudaFuncSetAttribute(turn, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    for (int round = 0; round < rounds; ++round) turn<<<blocks, 256, bytes>>>(values, bytes / 4, steps);
    CHECK(cudaGetLastError());
    std::printf("%d ", bytes);
    print_device_hash("bytes", values, blocks * 256);
  }
  for (int round = 0; round < rounds; ++round) fixed_only<<<blocks, 256>>>(values, steps);
  print_device_hash("48 KiB fixed", values, blocks * 256);
  turn<<<1, 256, 227 * 1024>>>(values, 1, 1);  // with the static part more than a block can have
  std::printf("too much: %s\n", cudaGetErrorName(cudaGetLastError()));
  CHECK(cudaDeviceSynchronize());
}
