// compat: page-locked, portable and write-combined host memory with asynchronous copies
// soft: yes
#include "advance.h"

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  const std::size_t bytes = count * sizeof(std::uint32_t);
  std::uint32_t *plain = nullptr, *portable = nullptr, *combined = nullptr, *device = zeros<std::uint32_t>(count);
  CHECK(cudaMallocHost(&plain, bytes));
  CHECK(cudaHostAlloc(&portable, bytes, cudaHostAllocPortable));
  CHECK(cudaHostAlloc(&combined, bytes, cudaHostAllocWriteCombined));
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  for (int i = 0; i < count; ++i) combined[i] = 77;
  CHECK(cudaMemcpyAsync(device, combined, bytes, cudaMemcpyHostToDevice, stream));
  for (int round = 0; round < rounds; ++round) {
    launch_advance(device, count, steps, round, stream);
    CHECK(cudaMemcpyAsync(round % 2 ? plain : portable, device, bytes, cudaMemcpyDeviceToHost, stream));
    if (round % 3 == 0)
      CHECK(cudaMemcpyAsync(device, round % 2 ? plain : portable, bytes, cudaMemcpyHostToDevice, stream));
  }
  CHECK(cudaStreamSynchronize(stream));
  const std::uint32_t* last = rounds % 2 ? portable : plain;
  must_have_advanced("pinned", last, count, steps, rounds, 77);
  print_hash("pinned", last, bytes);
  for (std::uint32_t* memory : {plain, portable, combined}) CHECK(cudaFreeHost(memory));
}
