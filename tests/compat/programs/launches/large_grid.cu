// compat: grids of a million blocks of little work, in which each block counts once
// soft: yes
#include "work.h"

__global__ void touch(std::uint32_t* counts, unsigned long long* sum, int steps) {
  const unsigned block = blockIdx.x;
  if (threadIdx.x == 0) counts[block] += 1 + block % 3;
  if (threadIdx.x == 33 && block % 4096 == 0) atomicAdd(sum, static_cast<unsigned long long>(mix(block, steps)));
}

int main() {
  const int blocks = scaled(1000003, 1003), rounds = scaled(60, 2);
  std::uint32_t* counts = zeros<std::uint32_t>(blocks);
  unsigned long long* sum = zeros<unsigned long long>(1);
  for (int round = 0; round < rounds; ++round) touch<<<blocks, 64>>>(counts, sum, scaled(20, 4));
  CHECK(cudaGetLastError());
  const std::vector<std::uint32_t> got = on_host(counts, blocks);
  for (int block = 0; block < blocks; ++block) must(got[block] == rounds * (1u + block % 3), "each block ran once");
  std::printf("blocks %d sum %llu\n", blocks, on_host(sum, 1)[0]);
}
