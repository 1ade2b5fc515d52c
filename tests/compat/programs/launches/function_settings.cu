// compat: launch bounds, cache preferences, the carve-out and the limit of dynamic shared memory of a function
// soft: yes
#include "work.h"

__global__ void __launch_bounds__(1024, 2) bounded(std::uint32_t* values, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  std::uint32_t own[12];
  for (int k = 0; k < 12; ++k) own[k] = mix(values[i] + k, steps / 12 + 1);
  std::uint32_t sum = 0;
  for (int k = 0; k < 12; ++k) sum = sum * 3 + own[(k + sum) % 12];
  values[i] = sum;
}

__global__ void __launch_bounds__(128) narrow(std::uint32_t* values, int words, int steps) {
  extern __shared__ std::uint32_t cells[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = threadIdx.x; k < words; k += blockDim.x) cells[k] = k ^ blockIdx.x;
  __syncthreads();
  values[i] = mix(values[i] + cells[(i * 5) % words], steps);
}

int main() {
  const int blocks = scaled(600, 4), rounds = work_rounds() / 4 + 1, steps = work_steps();
  std::uint32_t* values = zeros<std::uint32_t>(blocks * 1024);
  for (const int carve_out : {0, 50, 100, -1}) {
    CHECK(cudaFuncSetAttribute(narrow, cudaFuncAttributePreferredSharedMemoryCarveout, carve_out));
    CHECK(cudaFuncSetAttribute(narrow, cudaFuncAttributeMaxDynamicSharedMemorySize, 70000));
    CHECK(cudaFuncSetCacheConfig(bounded, carve_out == 0 ? cudaFuncCachePreferL1 : cudaFuncCachePreferShared));
    for (int round = 0; round < rounds; ++round) {
      bounded<<<blocks, 1024>>>(values, steps);
      narrow<<<blocks * 8, 128, 70000>>>(values, 17500, steps);
      narrow<<<blocks * 8, 128, 400>>>(values, 100, steps);
    }
    CHECK(cudaGetLastError());
    print_device_hash("values", values, blocks * 1024);
  }
  narrow<<<1, 256, 400>>>(values, 100, 1);
  std::printf("more threads than the bound: %s\n", cudaGetErrorName(cudaGetLastError()));
  narrow<<<1, 128, 70016>>>(values, 100, 1);
  std::printf("more shared memory than the limit: %s\n", cudaGetErrorName(cudaGetLastError()));
  bounded<<<0, 128>>>(values, 1);
  std::printf("no blocks: %s\n", cudaGetErrorName(cudaGetLastError()));
  print_device_hash("values", values, blocks * 1024);
}
