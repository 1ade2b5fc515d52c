// compat: mapped (zero-copy) host memory that kernels read and write
// soft: yes
#include "advance.h"

int main() {
  CHECK(cudaSetDeviceFlags(cudaDeviceMapHost));
  const int count = scaled(1 << 16, 1 << 10), steps = work_steps(), rounds = work_rounds();
  std::uint32_t *host = nullptr, *device = nullptr;
  CHECK(cudaHostAlloc(&host, count * sizeof(std::uint32_t), cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&device, host, 0));
  for (int i = 0; i < count; ++i) host[i] = 5;
  for (int round = 0; round < rounds; ++round) {
    launch_advance(device, count, steps, round);
    if (round % 50 == 49) {
      CHECK(cudaDeviceSynchronize());
      must_have_advanced("mapped, on the way", host, count, steps, round + 1, 5);
    }
  }
  CHECK(cudaDeviceSynchronize());
  must_have_advanced("mapped", host, count, steps, rounds, 5);
  print_hash("mapped", host, count * sizeof(std::uint32_t));
  unsigned flags = 0;
  CHECK(cudaHostGetFlags(&flags, host));
  must(flags & cudaHostAllocMapped, "the flags say mapped");
  CHECK(cudaFreeHost(host));
}
