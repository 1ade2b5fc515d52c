// compat: kernels with nearly 4 KB and nearly 32 KB of parameters
#include "work.h"

template <int kWords>
struct Words {
  std::uint32_t words[kWords];
};

template <int kWords>
__global__ void look_up(std::uint32_t* values, int count, int steps, const __grid_constant__ Words<kWords> given) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = mix(values[i] + given.words[(values[i] + i) % kWords], steps);
}

template <int kWords>
void test(const char* name) {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds() / 2;
  std::uint32_t* values = zeros<std::uint32_t>(count);
  static Words<kWords> given;
  std::vector<std::uint32_t> expected(50, 0);
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < kWords; ++k) given.words[k] = mix(k, 2) + round;
    look_up<<<(count + 255) / 256, 256>>>(values, count, steps, given);
    CHECK(cudaGetLastError());
    for (int i = 0; i < 50; ++i) expected[i] = mix(expected[i] + given.words[(expected[i] + i) % kWords], steps);
  }
  must_equal(name, on_host(values, 50).data(), expected.data(), 50);
  print_device_hash(name, values, count);
}

int main() {
  test<16>("64 bytes");
  test<(4096 - 16) / 4>("4096 bytes with the others");
  test<(4096 - 16 - 64) / 4>("4032 bytes with the others");
  test<(32764 - 16) / 4>("32764 bytes with the others");
  test<(32764 - 16 - 512) / 4>("32252 bytes with the others");
}
