// compat: cudaFuncGetAttributes answers for the original kernel, before and after it ran
// soft: yes
#include "work.h"

__constant__ std::uint32_t factors[100] = {3, 5};

__global__ void small(std::uint32_t* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += i;
}

__global__ void __launch_bounds__(256) large(std::uint32_t* values, int count, int steps) {
  __shared__ std::uint32_t cells[1000];
  std::uint32_t own[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  cells[threadIdx.x] = i < count ? values[i] : 0;
  __syncthreads();
  for (int k = 0; k < 64; ++k) own[(k * 7 + i) % 64] = mix(cells[k] + factors[k], 3);
  __syncthreads();
  if (i < count) values[i] = mix(own[values[i] % 64], steps) + cells[threadIdx.x ^ 1];
}

template <class F>
void print(const char* name, F function) {
  cudaFuncAttributes a{};
  CHECK(cudaFuncGetAttributes(&a, function));
  std::printf("%s: threads %d registers %d shared %zu constant %zu local %zu ptx %d dynamic %d\n", name,
              a.maxThreadsPerBlock, a.numRegs, a.sharedSizeBytes, a.constSizeBytes, a.localSizeBytes, a.ptxVersion,
              a.maxDynamicSharedSizeBytes);
}

int main() {
  print("small", small);
  print("large", large);
  const int count = work_threads();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) {
    small<<<(count + 255) / 256, 256>>>(values, count);
    large<<<(count + 255) / 256, 256>>>(values, count, work_steps());
  }
  CHECK(cudaDeviceSynchronize());
  print("small", small);
  print("large", large);
  CHECK(cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  print("large", large);
}
