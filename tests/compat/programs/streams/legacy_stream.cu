// compat: the legacy default stream waits for blocking streams and they for it; non-blocking streams do not
// soft: yes
#include "advance.h"

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  cudaStream_t blocking = nullptr, other = nullptr, free_one = nullptr;
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaStreamCreate(&other));
  CHECK(cudaStreamCreateWithFlags(&free_one, cudaStreamNonBlocking));
  std::uint32_t *values = zeros<std::uint32_t>(count), *apart = zeros<std::uint32_t>(count);
  CHECK(cudaDeviceSynchronize());
  // The same values by turns in a blocking stream, the legacy one and another blocking one, without any event.
  for (int round = 0; round < rounds; ++round) {
    const cudaStream_t streams[] = {blocking, nullptr, other, cudaStreamLegacy};
    launch_advance(values, count, steps, round, streams[round % 4]);
    launch_advance(apart, count, steps, round, free_one);
  }
  std::vector<std::uint32_t> got = on_host(values, count);
  must_have_advanced("by turns", got.data(), count, steps, rounds);
  print_hash("by turns", got.data(), count * sizeof(std::uint32_t));
  got = on_host(apart, count);
  must_have_advanced("apart", got.data(), count, steps, rounds);

  // A non-blocking stream that waits for the host does not hold up the legacy one.
  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreate(&event));
  volatile bool let_go = false;
  CHECK(cudaLaunchHostFunc(
      free_one,
      [](void* flag) {
        while (!*static_cast<volatile bool*>(flag)) continue;
      },
      const_cast<bool*>(&let_go)));
  launch_advance(values, count, steps, rounds);
  CHECK(cudaStreamSynchronize(nullptr));
  std::printf("the non-blocking stream still waits: %d\n", cudaStreamQuery(free_one) == cudaErrorNotReady);
  let_go = true;
  CHECK(cudaStreamSynchronize(free_one));
  print_device_hash("once more", values, count);
}
