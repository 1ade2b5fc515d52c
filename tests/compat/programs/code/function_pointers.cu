// compat: pointers to device functions in tables, in symbols and as arguments
// soft: yes
#include "work.h"

using Function = std::uint32_t (*)(std::uint32_t, int);

__host__ __device__ __noinline__ std::uint32_t add(std::uint32_t value, int steps) {
  return mix(value + 1, steps);
}
__host__ __device__ __noinline__ std::uint32_t flip(std::uint32_t value, int steps) {
  return ~mix(value, steps / 2);
}
__host__ __device__ __noinline__ std::uint32_t turn(std::uint32_t value, int steps) {
  return (value << 7 | value >> 25) + steps;
}

__device__ Function table[] = {add, flip, turn};
__device__ Function chosen = turn;

__global__ void call(std::uint32_t* values, int count, int steps, Function given) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = given(table[(values[i] >> 3) % 3](values[i] + i, steps), steps);
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  Function given = nullptr;
  CHECK(cudaMemcpyFromSymbol(&given, chosen, sizeof given));
  for (int round = 0; round < rounds; ++round) call<<<(count + 255) / 256, 256>>>(values, count, steps, given);
  CHECK(cudaGetLastError());
  const Function host_table[] = {add, flip, turn};
  const std::vector<std::uint32_t> got = on_host(values, count);
  for (int i = 0; i < count; i += count / 97 + 1) {
    std::uint32_t value = 0;
    for (int round = 0; round < rounds; ++round) value = turn(host_table[(value >> 3) % 3](value + i, steps), steps);
    must(got[i] == value, "what the functions return");
  }
  print_hash("pointers", got.data(), count * sizeof(std::uint32_t));
}
