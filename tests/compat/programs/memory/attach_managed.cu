// compat: managed memory that is attached to a stream while the host uses other managed memory
#include "advance.h"

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  std::uint32_t* values[2];
  cudaStream_t streams[2];
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaMallocManaged(&values[i], count * sizeof(std::uint32_t), cudaMemAttachHost));
    std::memset(values[i], 0, count * sizeof(std::uint32_t));
    CHECK(cudaStreamCreate(&streams[i]));
    CHECK(cudaStreamAttachMemAsync(streams[i], values[i], 0, cudaMemAttachSingle));
    CHECK(cudaStreamSynchronize(streams[i]));
  }
  for (int round = 0; round < rounds; ++round) {
    launch_advance(values[0], count, steps, round, streams[0]);
    launch_advance(values[1], count, steps, round, streams[1]);
    if (round % 20) continue;
    CHECK(cudaStreamSynchronize(streams[1]));  // the host may read these while the other stream runs
    must_have_advanced("attached, on the way", values[1], count, steps, round + 1);
  }
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 2; ++i) print_hash("attached", values[i], count * sizeof(std::uint32_t));
}
