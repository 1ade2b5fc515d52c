// compat: relocatable device code: extern functions and variables that the linker joins
// builds: rdc
#include "work.h"

// Declared here as another file would see them; defined below the kernel, kept apart by the linker.
extern __device__ std::uint32_t shared_table[64];
extern __constant__ std::uint32_t shared_factor;
extern __device__ std::uint32_t outer(std::uint32_t value, int steps);
extern __device__ void store(std::uint32_t* to, std::uint32_t value);

__global__ void call(std::uint32_t* values, int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) store(values + i, outer(values[i] + i, steps) + shared_table[i % 64]);
}

__device__ std::uint32_t shared_table[64] = {5, 6, 7};
__constant__ std::uint32_t shared_factor = 3;
__device__ __noinline__ std::uint32_t inner(std::uint32_t value, int steps) {
  return mix(value, steps) * shared_factor;
}
__device__ __noinline__ std::uint32_t outer(std::uint32_t value, int steps) {
  return inner(value, steps / 2) ^ inner(value + blockIdx.x, steps / 2);
}
__device__ __noinline__ void store(std::uint32_t* to, std::uint32_t value) {
  *to = value;
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < rounds; ++round) call<<<(count + 255) / 256, 256>>>(values, count, steps);
  CHECK(cudaGetLastError());
  const std::vector<std::uint32_t> got = on_host(values, count);
  for (int i = 0; i < count; i += count / 97 + 1) {
    std::uint32_t value = 0;
    for (int round = 0; round < rounds; ++round) {
      const std::uint32_t a = mix(value + i, steps / 2) * 3, b = mix(value + i + i / 256, steps / 2) * 3;
      value = (a ^ b) + (i % 64 < 3 ? 5 + i % 64 : 0);
    }
    must(got[i] == value, "what the functions compute");
  }
  print_hash("separate", got.data(), count * sizeof(std::uint32_t));
}
