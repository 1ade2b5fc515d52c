// compat: thousands of small allocations and frees between and during kernels
// soft: yes
#include "advance.h"

int main() {
  const int steps = work_steps(), rounds = scaled(200, 3), each = 40;
  std::vector<std::uint32_t*> kept;
  std::uint32_t* big = zeros<std::uint32_t>(work_threads());
  std::uint64_t all = 0;
  for (int round = 0; round < rounds; ++round) {
    launch_advance(big, work_threads(), steps, round);
    for (int i = 0; i < each; ++i) {
      std::uint32_t* memory = nullptr;
      CHECK(cudaMalloc(&memory, 64 + i * 100));
      CHECK(cudaMemsetAsync(memory, 0, 64));
      kept.push_back(memory);
    }
    launch_advance(kept.back(), 16, steps, round);
    std::uint32_t got[16];
    CHECK(cudaMemcpy(got, kept.back(), sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; ++i) must(got[i] == mix(i + round, steps), "what a small allocation holds");
    all = all * 31 + hash_of(got, sizeof got);
    // Half of them are freed while the next kernel runs, the oldest first.
    launch_advance(big, work_threads(), steps, round);
    for (int i = 0; i < each / 2; ++i) CHECK(cudaFree(kept[i]));
    kept.erase(kept.begin(), kept.begin() + each / 2);
  }
  for (std::uint32_t* memory : kept) CHECK(cudaFree(memory));
  std::printf("small %016llx left %zu\n", static_cast<unsigned long long>(all), kept.size());
  print_device_hash("big", big, work_threads());
}
