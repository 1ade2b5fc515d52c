// compat: cp.async into a ring of stages in shared memory: by PTX and by the pipeline intrinsics
// soft: yes
#include <cuda_pipeline.h>

#include "work.h"

constexpr int kStages = 3, kThreads = 128;

__global__ void by_ptx(const uint4* from, std::uint32_t* sums, int tiles, int steps) {
  __shared__ uint4 ring[kStages][kThreads];
  from += static_cast<std::size_t>(blockIdx.x % 50) * tiles * kThreads;
  const auto request = [&](int tile) {
    if (tile < tiles) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                       static_cast<std::uint32_t>(__cvta_generic_to_shared(&ring[tile % kStages][threadIdx.x]))),
                   "l"(from + tile * kThreads + threadIdx.x)
                   : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int tile = 0; tile < kStages - 1; ++tile) request(tile);
  std::uint32_t sum = sums[blockIdx.x * kThreads + threadIdx.x];
  for (int tile = 0; tile < tiles; ++tile) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();
    const uint4 value = ring[tile % kStages][kThreads - 1 - threadIdx.x];
    request(tile + kStages - 1);
    sum = mix(sum + value.x + 3 * value.y + 5 * value.z + 7 * value.w, steps);
  }
  sums[blockIdx.x * kThreads + threadIdx.x] = sum;
}

__global__ void by_intrinsics(const uint4* from, std::uint32_t* sums, int tiles, int steps) {
  __shared__ uint4 pair[2][kThreads];
  from += static_cast<std::size_t>(blockIdx.x % 50) * tiles * kThreads;
  __pipeline_memcpy_async(&pair[0][threadIdx.x], from + threadIdx.x, 16);
  __pipeline_commit();
  std::uint32_t sum = sums[blockIdx.x * kThreads + threadIdx.x];
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles)
      __pipeline_memcpy_async(&pair[(tile + 1) % 2][threadIdx.x], from + (tile + 1) * kThreads + threadIdx.x, 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    const uint4 value = pair[tile % 2][threadIdx.x ^ 1];
    sum = mix(sum ^ value.x ^ value.y ^ value.z ^ value.w, steps);
    __syncthreads();
  }
  sums[blockIdx.x * kThreads + threadIdx.x] = sum;
}

int main() {
  const int blocks = scaled(2048, 8), tiles = scaled(20, 5), steps = scaled(100, 4), rounds = work_rounds() / 2;
  std::vector<uint4> values(50 * tiles * kThreads);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto n = static_cast<std::uint32_t>(i);
    values[i] = make_uint4(mix(n, 1), n, ~n, mix(n, 2));
  }
  const uint4* from = on_device(values);
  std::uint32_t* sums = zeros<std::uint32_t>(blocks * kThreads);
  for (int round = 0; round < rounds; ++round) {
    by_ptx<<<blocks, kThreads>>>(from, sums, tiles, steps);
    by_intrinsics<<<blocks, kThreads>>>(from, sums, tiles, steps);
  }
  CHECK(cudaGetLastError());
  const std::vector<std::uint32_t> got = on_host(sums, blocks * kThreads);
  for (const int thread : {0, 77, blocks * kThreads - 1}) {
    std::uint32_t sum = 0;
    const uint4* own = values.data() + static_cast<std::size_t>(thread / kThreads % 50) * tiles * kThreads;
    for (int round = 0; round < rounds; ++round) {
      for (int tile = 0; tile < tiles; ++tile) {
        const uint4& v = own[tile * kThreads + kThreads - 1 - thread % kThreads];
        sum = mix(sum + v.x + 3 * v.y + 5 * v.z + 7 * v.w, steps);
      }
      for (int tile = 0; tile < tiles; ++tile) {
        const uint4& v = own[tile * kThreads + (thread % kThreads ^ 1)];
        sum = mix(sum ^ v.x ^ v.y ^ v.z ^ v.w, steps);
      }
    }
    must(got[thread] == sum, "what went through the pipelines");
  }
  print_hash("pipelines", got.data(), got.size() * sizeof(std::uint32_t));
}
