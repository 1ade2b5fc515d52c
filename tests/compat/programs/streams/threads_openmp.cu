// compat: OpenMP threads that allocate, launch, copy and free
// flags: -Xcompiler -fopenmp
// soft: yes
#include "advance.h"

int main() {
  const int count = scaled(1 << 16, 1 << 8), steps = work_steps(), rounds = work_rounds() / 4 + 1;
  scaled(0, 0);
  std::uint64_t hashes[32] = {};
#pragma omp parallel for num_threads(8) schedule(dynamic)
  for (int task = 0; task < 32; ++task) {
    std::vector<std::uint32_t> got(count);
    cudaStream_t stream = nullptr;
    std::uint32_t* values = nullptr;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMallocAsync(&values, count * sizeof(std::uint32_t), stream));
    CHECK(cudaMemsetAsync(values, 0, count * sizeof(std::uint32_t), stream));
    for (int round = 0; round < rounds; ++round) launch_advance(values, count, steps, round + task, stream);
    CHECK(cudaMemcpyAsync(got.data(), values, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(values, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
    if (task == 0) must_have_advanced("task", got.data(), count, steps, rounds);
    hashes[task] = hash_of(got.data(), count * sizeof(std::uint32_t));
  }
  for (int task = 0; task < 32; ++task)
    std::printf("%d %016llx\n", task, static_cast<unsigned long long>(hashes[task]));
}
