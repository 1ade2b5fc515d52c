// compat: cuRAND inside kernels: XORWOW, Philox and MRG32k3a states kept between launches
// soft: yes
#include <curand_kernel.h>

#include "mix.h"

namespace {

template <typename State>
__global__ void begin(State* states, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) curand_init(1234, static_cast<unsigned long long>(i), 0, &states[i]);
}

/// How many of the points lie in the quarter circle, by integers alone, and the exclusive or of the numbers.
template <typename State>
__global__ void draw(State* states, int count, int points, unsigned* inside, unsigned* mixed) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  State state = states[i];
  for (int point = 0; point < points; ++point) {
    const unsigned long long x = curand(&state), y = curand(&state);
    mixed[i] ^= static_cast<unsigned>(x) + 3 * static_cast<unsigned>(y);
    if ((x >> 1) * (x >> 1) + (y >> 1) * (y >> 1) < 1ull << 62) atomicAdd(inside, 1);
  }
  states[i] = state;
}

template <typename State>
void run(const char* name, bool small) {
  const int count = small ? 256 : 1 << 16, points = small ? 4 : 100, rounds = small ? 3 : 30;
  State* states = nullptr;
  unsigned *inside = nullptr, *mixed = nullptr;
  CHECK(cudaMalloc(&states, static_cast<std::size_t>(count) * sizeof(State)));
  CHECK(cudaMalloc(&inside, sizeof(unsigned)));
  CHECK(cudaMalloc(&mixed, static_cast<std::size_t>(count) * sizeof(unsigned)));
  CHECK(cudaMemset(inside, 0, sizeof(unsigned)));
  CHECK(cudaMemset(mixed, 0, static_cast<std::size_t>(count) * sizeof(unsigned)));
  begin<<<blocks_for(count), 256>>>(states, count);
  CHECK(cudaGetLastError());
  for (int round = 0; round < rounds; ++round) {
    draw<<<blocks_for(count), 256>>>(states, count, points, inside, mixed);
    CHECK(cudaGetLastError());
  }
  unsigned hits = 0;
  CHECK(cudaMemcpy(&hits, inside, sizeof hits, cudaMemcpyDeviceToHost));
  std::vector<unsigned> got(static_cast<std::size_t>(count));
  CHECK(cudaMemcpy(got.data(), mixed, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  const double pi = 4.0 * hits / (static_cast<double>(count) * points * rounds);
  std::printf("%s %u %s\n", name, hits, pi > 3.05 && pi < 3.23 ? "right" : "WRONG");
  print_hash(name, got.data(), got.size() * sizeof(unsigned));
  CHECK(cudaFree(states));
  CHECK(cudaFree(inside));
  CHECK(cudaFree(mixed));
}

}  // namespace

int main() {
  const bool small = on_software();
  run<curandStateXORWOW_t>("xorwow", small);
  run<curandStatePhilox4_32_10_t>("philox", small);
  run<curandStateMRG32k3a_t>("mrg32k3a", small);
  return 0;
}
