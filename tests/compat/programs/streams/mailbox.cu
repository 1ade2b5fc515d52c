// compat: a kernel that waits for a word which the host writes only after it has launched another kernel
// soft: yes
#include <cstdint>
#include <cstdio>

#include "advance.h"

__global__ void wait_for_letter(volatile std::uint32_t* letter, std::uint32_t* got) {
  while (*letter == 0) {
  }
  *got = *letter;
}

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  cudaStream_t waiting = nullptr, working = nullptr;
  CHECK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
  std::uint32_t *letter = nullptr, *got = zeros<std::uint32_t>(1), *values = zeros<std::uint32_t>(count);
  CHECK(cudaHostAlloc(&letter, sizeof *letter, cudaHostAllocMapped));
  launch_advance(values, count, steps, 0);  // all code is loaded before anything waits
  *letter = 1;
  wait_for_letter<<<1, 1, 0, waiting>>>(letter, got);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  *letter = 0;
  CHECK(cudaStreamCreateWithFlags(&working, cudaStreamNonBlocking));
  wait_for_letter<<<1, 1, 0, waiting>>>(letter, got);
  CHECK(cudaGetLastError());
  for (int round = 1; round < rounds; ++round) launch_advance(values, count, steps, round, working);
  CHECK(cudaStreamSynchronize(working));
  std::printf("still waiting: %d\n", cudaStreamQuery(waiting) == cudaErrorNotReady);
  *static_cast<volatile std::uint32_t*>(letter) = 42;
  CHECK(cudaStreamSynchronize(waiting));
  must_have_advanced("beside the one that waits", on_host(values, count).data(), count, steps, rounds);
  print_device_hash("letter", got, 1);
  print_device_hash("values", values, count);
}
