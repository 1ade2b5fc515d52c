// compat: eight host threads, each with a stream and memory of its own
// soft: yes
#include <thread>

#include "advance.h"

int main() {
  constexpr int kThreads = 8;
  const int count = scaled(1 << 16, 1 << 8), steps = work_steps(), rounds = work_rounds();
  std::vector<std::vector<std::uint32_t>> got(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      CHECK(cudaSetDevice(0));
      cudaStream_t stream = nullptr;
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      std::uint32_t *values = nullptr, *host = nullptr;
      CHECK(cudaMalloc(&values, count * sizeof(std::uint32_t)));
      CHECK(cudaMallocHost(&host, count * sizeof(std::uint32_t)));
      CHECK(cudaMemsetAsync(values, 0, count * sizeof(std::uint32_t), stream));
      for (int round = 0; round < rounds; ++round) {
        launch_advance(values, count, steps, round, stream);
        if (round % 16 == t) CHECK(cudaStreamSynchronize(stream));
      }
      CHECK(cudaMemcpyAsync(host, values, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
      got[t].assign(host, host + count);
      CHECK(cudaFree(values));
      CHECK(cudaFreeHost(host));
      CHECK(cudaStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& values : got) {
    must_have_advanced("thread", values.data(), count, steps, rounds);
    print_hash("thread", values.data(), count * sizeof(std::uint32_t));
  }
}
