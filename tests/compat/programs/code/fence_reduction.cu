// compat: reductions that the last block finishes, by __threadfence and a counter
// soft: yes
#include "work.h"

__device__ unsigned arrived = 0;

__global__ void reduce(const std::uint32_t* values, int count, int steps, volatile unsigned long long* partial,
                       unsigned long long* result) {
  __shared__ unsigned long long sums[256];
  __shared__ bool last;
  unsigned long long sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    sum += mix(values[i], steps);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sums[0];
    __threadfence();
    last = atomicInc(&arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  sum = 0;
  for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum = sum + partial[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < 256; ++i) sum += sums[i];
  *result += sum;
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds(), blocks = scaled(1500, 20);
  std::vector<std::uint32_t> values(count);
  unsigned long long expected = 0;
  for (int i = 0; i < count; ++i) values[i] = i % 1009;
  std::vector<unsigned long long> each(1009);
  for (int i = 0; i < 1009; ++i) each[i] = mix(i, steps);
  for (int i = 0; i < count; ++i) expected += each[i % 1009];
  const std::uint32_t* from = on_device(values);
  unsigned long long *partial = zeros<unsigned long long>(blocks), *result = zeros<unsigned long long>(1);
  for (int round = 0; round < rounds; ++round) reduce<<<blocks, 256>>>(from, count, steps, partial, result);
  CHECK(cudaGetLastError());
  const unsigned long long got = on_host(result, 1)[0];
  must(got == expected * rounds, "the sum");
  std::printf("sum %llu\n", got);
}
