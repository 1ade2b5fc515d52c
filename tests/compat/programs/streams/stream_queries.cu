// compat: loops that ask streams and events whether they are done, and yield meanwhile
// soft: yes
#include <sched.h>

#include "advance.h"

int main() {
  const int count = scaled(1 << 17, 1 << 9), steps = work_steps(), rounds = work_rounds() / 2 + 1;
  cudaStream_t streams[4];
  std::uint32_t* values[4];
  int done[4] = {};
  for (int i = 0; i < 4; ++i) {
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    values[i] = zeros<std::uint32_t>(count);
  }
  CHECK(cudaDeviceSynchronize());
  // The next kernel of a stream is launched when the stream is seen to be done.
  for (int left = 4 * rounds; left > 0;) {
    for (int i = 0; i < 4; ++i) {
      const cudaError_t state = cudaStreamQuery(streams[i]);
      must(state == cudaSuccess || state == cudaErrorNotReady, "a stream is done or not");
      if (state != cudaSuccess || done[i] == rounds) continue;
      launch_advance(values[i], count, steps, done[i]++, streams[i]);
      --left;
    }
    sched_yield();
  }
  for (int i = 0; i < 4; ++i) {
    while (cudaStreamQuery(streams[i]) == cudaErrorNotReady) sched_yield();
    const std::vector<std::uint32_t> got = on_host(values[i], count);
    must_have_advanced("queried", got.data(), count, steps, rounds);
    print_hash("queried", got.data(), count * sizeof(std::uint32_t));
  }
}
