// compat: host functions in two streams that hand data to the kernels behind them
// soft: yes
#include "advance.h"

struct Step {
  std::uint32_t* memory;  // page-locked, one word
  std::uint32_t seen, salt;
};

void between(void* data) {
  auto* step = static_cast<Step*>(data);
  step->seen = *step->memory;
  *step->memory = step->seen ^ step->salt;
}

int main() {
  const int count = work_threads() / 2, steps = work_steps(), rounds = work_rounds();
  for (int s = 0; s < 2; ++s) {
    cudaStream_t stream = nullptr;
    CHECK(cudaStreamCreateWithFlags(&stream, s ? cudaStreamNonBlocking : cudaStreamDefault));
    std::uint32_t *word = nullptr, *values = zeros<std::uint32_t>(count);
    CHECK(cudaMallocHost(&word, sizeof *word));
    CHECK(cudaDeviceSynchronize());
    std::vector<Step> all(rounds);
    for (int round = 0; round < rounds; ++round) {
      all[round] = {word, 0, mix(round, 5)};
      launch_advance(values, count, steps, round, stream);
      CHECK(cudaMemcpyAsync(word, values, sizeof *word, cudaMemcpyDeviceToHost, stream));
      CHECK(cudaLaunchHostFunc(stream, between, &all[round]));
      CHECK(cudaMemcpyAsync(values, word, sizeof *word, cudaMemcpyHostToDevice, stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    std::uint32_t value = 0;
    for (int round = 0; round < rounds; ++round) {
      value = mix(value + round, steps);
      must(all[round].seen == value, "what the host function saw");
      value ^= all[round].salt;
    }
    print_device_hash("values", values, count);
  }
}
