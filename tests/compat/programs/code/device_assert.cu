// compat: assert in kernels, which holds
// soft: yes
#undef NDEBUG
#include <cassert>

#include "work.h"

__global__ void checked(std::uint32_t* values, int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(gridDim.x * blockDim.x >= count);
  if (i >= count) return;
  const std::uint32_t value = mix(values[i] % 1024 + i, steps);
  assert(value != 0x12345 || steps > 0);
  values[i] = value % 1024;
  assert(values[i] < 1024);
}

int main() {
  const int count = work_threads();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round)
    checked<<<(count + 255) / 256, 256>>>(values, count, work_steps());
  CHECK(cudaGetLastError());
  print_device_hash("asserted", values, count);
}
