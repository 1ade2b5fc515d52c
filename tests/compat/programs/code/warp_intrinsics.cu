// compat: warp intrinsics: shuffles, votes, matches, reductions, partial masks
// soft: yes
#include "work.h"

__global__ void whole(std::uint32_t* values, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  std::uint32_t value = mix(values[i] + i, steps);
  std::uint32_t sum = value;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  value ^= sum + __shfl_up_sync(0xffffffff, value, 3) + __shfl_down_sync(0xffffffff, value, 7, 16);
  value += __shfl_sync(0xffffffff, value, (lane * 7 + 3) % 32);
  value ^= __ballot_sync(0xffffffff, value & 1);
  value += __any_sync(0xffffffff, value % 64 == 0) * 3 + __all_sync(0xffffffff, value != 5) * 5;
  value ^= __match_any_sync(0xffffffff, value % 4);
  int same = 0;
  value += __match_all_sync(0xffffffff, sum, &same);
  value += same;
  value += __reduce_add_sync(0xffffffff, value) ^ __reduce_max_sync(0xffffffff, value);
  value ^= __reduce_min_sync(0xffffffff, static_cast<int>(value)) + __reduce_xor_sync(0xffffffff, value);
  value ^= __reduce_and_sync(0xffffffff, value | 0xff) + __reduce_or_sync(0xffffffff, value & 0xff);
  values[i] = value;
}

__global__ void part(std::uint32_t* values, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  std::uint32_t value = values[i];
  if (lane % 3 == 0) {
    const unsigned mask = 0x49249249;  // lanes 0, 3, 6 to 30
    value = mix(value, steps / 2) + __shfl_sync(mask, value, 9) + __reduce_add_sync(mask, value % 1000);
    __syncwarp(mask);
    value ^= __ballot_sync(mask, value & 2);
  } else if (lane < 16) {
    const unsigned mask = 0x0000ffff & ~0x49249249u;
    value = mix(value, steps / 3) ^ __match_any_sync(mask, value % 3);
  }
  __syncwarp();
  values[i] = value + __popc(__ballot_sync(0xffffffff, value & 4)) + __ffs(value) + __clz(value) + __brev(value);
}

int main() {
  const int count = work_threads();
  std::uint32_t* values = zeros<std::uint32_t>(count);
  for (int round = 0; round < work_rounds(); ++round) {
    whole<<<count / 256, 256>>>(values, work_steps());
    part<<<count / 128, 128>>>(values, work_steps());
  }
  CHECK(cudaGetLastError());
  print_device_hash("warps", values, count);
}
