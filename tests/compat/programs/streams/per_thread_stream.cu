// compat: the per-thread default stream, in several threads
// flags: --default-stream per-thread
#include <thread>

#include "advance.h"

int main() {
  constexpr int kThreads = 6;
  const int count = scaled(1 << 16, 1 << 9), steps = work_steps(), rounds = work_rounds();
  scaled(0, 0);
  std::vector<std::vector<std::uint32_t>> got(kThreads, std::vector<std::uint32_t>(count));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::uint32_t* values = zeros<std::uint32_t>(count);
      for (int round = 0; round < rounds; ++round) launch_advance(values, count, steps, round);
      CHECK(cudaMemcpyAsync(got[t].data(), values, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost));
      CHECK(cudaStreamSynchronize(cudaStreamPerThread));
      CHECK(cudaFree(values));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    must_have_advanced("thread", got[t].data(), count, steps, rounds);
    print_hash("thread", got[t].data(), count * sizeof(std::uint32_t));
  }
}
