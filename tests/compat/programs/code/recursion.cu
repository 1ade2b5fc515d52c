// compat: recursive device functions and a larger stack
// soft: yes
#include "work.h"

__host__ __device__ __noinline__ std::uint32_t ackermann(std::uint32_t m, std::uint32_t n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

__host__ __device__ __noinline__ std::uint32_t tree(std::uint32_t value, int depth) {
  std::uint32_t own[6];
  for (int k = 0; k < 6; ++k) own[(k + value) % 6] = mix(value + k, 2);
  if (depth == 0) return own[value % 6];
  return own[0] ^ tree(own[1 + value % 5], depth - 1) ^ (tree(own[5], depth - 1) << 1);
}

__global__ void recurse(std::uint32_t* values, int count, int depth) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = tree(values[i] + i, depth) + ackermann(2, i % 4);
}

int main() {
  const int count = scaled(1 << 16, 1 << 7), depth = scaled(5, 2), rounds = work_rounds() / 4 + 1;
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < rounds; ++round) recurse<<<(count + 127) / 128, 128>>>(values, count, depth);
  CHECK(cudaGetLastError());
  const std::vector<std::uint32_t> got = on_host(values, count);
  for (int i = 0; i < count; i += 97) {
    std::uint32_t value = 0;
    for (int round = 0; round < rounds; ++round) value = tree(value + i, depth) + ackermann(2, i % 4);
    must(got[i] == value, "what the recursion returns");
  }
  print_hash("recursion", got.data(), count * sizeof(std::uint32_t));
}
