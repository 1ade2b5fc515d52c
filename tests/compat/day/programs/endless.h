// Kernels without an end.
#pragma once

#include "mix.h"

/// Says "ready" when some are done.
[[noreturn]] inline void launch_until_killed() {
  const bool small = on_software();
  const int count = small ? 1024 : 1 << 20, depth = small ? 4 : 1000;
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(unsigned)));
  number_kernel<<<blocks_for(count), 256>>>(data, count);
  for (unsigned round = 0;; ++round) {
    launch_mix(data, count, round, depth);
    if (round % 64 == 63) CHECK(cudaDeviceSynchronize());
    if (round != 100) continue;
    std::printf("ready\n");
    std::fflush(stdout);
  }
}
