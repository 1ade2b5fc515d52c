// compat: __nanosleep, clock64 and the global timer
// soft: yes
#include "work.h"

__global__ void timed(std::uint32_t* values, int count, int steps, unsigned* wrong) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long before = 0, after = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
  const long long start = clock64();
  __nanosleep(500 + i % 64 * 20);
  const std::uint32_t value = i < count ? mix(values[i] + i, steps) : 0;
  const long long end = clock64();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after));
  if (end == start || after < before) atomicAdd(wrong, 1);
  if (i < count) values[i] = value;
}

/// Waits by the clock for a number of cycles.
__global__ void spin(long long cycles, std::uint32_t* values) {
  const long long start = clock64();
  while (clock64() - start < cycles) continue;
  values[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

int main() {
  const int count = work_threads() / 4, rounds = work_rounds() / 2;
  std::uint32_t* values = zeros<std::uint32_t>(count);
  unsigned* wrong = zeros<unsigned>(1);
  for (int round = 0; round < rounds; ++round) {
    timed<<<(count + 127) / 128, 128>>>(values, count, work_steps(), wrong);
    spin<<<count / 128, 128>>>(scaled(20000, 100), values);
  }
  CHECK(cudaGetLastError());
  print_device_hash("values", values, count);
  std::printf("clocks that stood still or ran backwards %u\n", on_host(wrong, 1)[0]);
}
