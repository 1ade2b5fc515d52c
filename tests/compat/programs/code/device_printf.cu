// compat: printf in kernels, in an order that is determined
// soft: yes
#include "advance.h"

__global__ void say(const std::uint32_t* values, int round, int block) {
  if (blockIdx.x == block && threadIdx.x == 3) {
    printf("round %d block %d value %u %s %.3f %llx %c%%\n", round, block, values[threadIdx.x], "text", round * 0.125,
           0x123456789abcull + round, 'a' + round % 26);
  }
}

__global__ void say_in_turn(int round) {
  for (int t = 0; t < blockDim.x; ++t) {
    if (threadIdx.x == t) printf("round %d thread %d\n", round, t);
    __syncthreads();
  }
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = scaled(60, 3);
  std::uint32_t* values = zeros<std::uint32_t>(count);
  CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4 << 20));
  for (int round = 0; round < rounds; ++round) {
    launch_advance(values, count, steps, round);
    say<<<scaled(500, 10), 64>>>(values, round, round % 10);
    if (round % 20 == 0) say_in_turn<<<1, 40>>>(round);
    if (round % 10 == 9) CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaDeviceSynchronize());
  std::printf("all said\n");
}
