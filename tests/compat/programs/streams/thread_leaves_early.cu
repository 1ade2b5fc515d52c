// compat: threads that launch and end while their kernels run; others wait for these
// soft: yes
#include <thread>

#include "advance.h"

int main() {
  const int count = scaled(1 << 17, 1 << 9), steps = work_steps(), each = scaled(20, 1), threads = scaled(12, 4);
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::uint32_t* values = zeros<std::uint32_t>(count);
  CHECK(cudaDeviceSynchronize());
  int round = 0;
  for (int t = 0; t < threads; ++t) {
    std::thread([&] {
      for (int i = 0; i < each; ++i) launch_advance(values, count, steps, round++, stream);
    }).join();
  }
  // The last one makes a stream that nobody destroys, and per-thread work that nobody waits for but the device.
  std::uint32_t* other = zeros<std::uint32_t>(count);
  CHECK(cudaDeviceSynchronize());
  std::thread([&] {
    cudaStream_t own = nullptr;
    CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    for (int i = 0; i < each; ++i) launch_advance(other, count, steps, i, own);
    launch_advance(values, count, steps, round++, cudaStreamPerThread);
  }).join();
  must_have_advanced("values", on_host(values, count).data(), count, steps, round);
  must_have_advanced("other", on_host(other, count).data(), count, steps, each);
  print_device_hash("values", values, count);
  print_device_hash("other", other, count);
}
