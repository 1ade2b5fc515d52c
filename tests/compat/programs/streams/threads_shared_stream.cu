// compat: eight host threads that launch into one stream
// soft: yes
#include <thread>

#include "advance.h"

int main() {
  constexpr int kThreads = 8;
  const int count = scaled(1 << 16, 1 << 8), steps = work_steps(), rounds = work_rounds();
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  std::vector<std::uint32_t*> values;
  for (int t = 0; t < kThreads; ++t) values.push_back(zeros<std::uint32_t>(count));
  CHECK(cudaDeviceSynchronize());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < rounds; ++round) {
        launch_advance(values[t], count, steps, round, stream);
        if (round % 32 == 4 * t) CHECK(cudaStreamSynchronize(stream));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(cudaStreamSynchronize(stream));
  for (std::uint32_t* each : values) {
    must_have_advanced("thread", on_host(each, count).data(), count, steps, rounds);
    print_device_hash("thread", each, count);
  }
}
