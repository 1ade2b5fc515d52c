// compat: std::async tasks that launch work and hand on its result
// soft: yes
#include <future>

#include "advance.h"

std::vector<std::uint32_t> task(int number, int count, int steps, int rounds) {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  std::uint32_t* values = nullptr;
  CHECK(cudaMalloc(&values, count * sizeof(std::uint32_t)));
  CHECK(cudaMemsetAsync(values, number, count * sizeof(std::uint32_t), stream));
  for (int round = 0; round < rounds; ++round) launch_advance(values, count, steps, round, stream);
  CHECK(cudaStreamSynchronize(stream));
  std::vector<std::uint32_t> got(count);
  CHECK(cudaMemcpy(got.data(), values, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(values));
  CHECK(cudaStreamDestroy(stream));
  return got;
}

int main() {
  const int count = scaled(1 << 16, 1 << 8), steps = work_steps(), rounds = work_rounds() / 4 + 1;
  for (int wave = 0; wave < 3; ++wave) {
    std::vector<std::future<std::vector<std::uint32_t>>> tasks;
    for (int number = 0; number < 8; ++number) {
      tasks.push_back(std::async(std::launch::async, task, number, count, steps, rounds));
    }
    for (int number = 0; number < 8; ++number) {
      const std::vector<std::uint32_t> got = tasks[number].get();
      must_have_advanced("task", got.data(), count, steps, rounds, number * 0x01010101u);
      print_hash("task", got.data(), count * sizeof(std::uint32_t));
    }
  }
}
