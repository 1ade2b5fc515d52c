// compat: __managed__ variables, read and written by both sides in turns
// soft: yes
#include "work.h"

__managed__ std::uint32_t cells[1 << 14];
__managed__ int rounds_done = 0;
__managed__ std::uint32_t* elsewhere = nullptr;

__global__ void change(int count, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  elsewhere[i] = mix(elsewhere[i] + cells[i % (1 << 14)], steps);
  if (i == 0) ++rounds_done;
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  CHECK(cudaMallocManaged(&elsewhere, count * sizeof(std::uint32_t)));
  for (int i = 0; i < count; ++i) elsewhere[i] = i;
  std::uint32_t first = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < 1 << 14; k += 64) cells[k] = round + k;
    change<<<(count + 255) / 256, 256>>>(count, steps);
    CHECK(cudaDeviceSynchronize());
    first = mix(first + round, steps);
    must(rounds_done == round + 1, "the host sees the number of rounds");
    must(elsewhere[0] == first, "the host sees the first value");
  }
  print_hash("managed", elsewhere, count * sizeof(std::uint32_t));
  CHECK(cudaFree(elsewhere));
}
