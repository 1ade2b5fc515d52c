// compat: managed memory with prefetches and advice, touched by both sides
#include "advance.h"

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  const std::size_t bytes = count * sizeof(std::uint32_t);
  std::uint32_t *values = nullptr, *table = nullptr;
  CHECK(cudaMallocManaged(&values, bytes));
  CHECK(cudaMallocManaged(&table, bytes, cudaMemAttachGlobal));
  for (int i = 0; i < count; ++i) values[i] = table[i] = 9;
  cudaMemLocation gpu{}, cpu{};
  gpu.type = cudaMemLocationTypeDevice;
  cpu.type = cudaMemLocationTypeHost;
  CHECK(cudaMemAdvise(values, bytes, cudaMemAdviseSetPreferredLocation, gpu));
  CHECK(cudaMemAdvise(values, bytes, cudaMemAdviseSetAccessedBy, cpu));
  CHECK(cudaMemAdvise(table, bytes, cudaMemAdviseSetReadMostly, gpu));
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  for (int round = 0; round < rounds; ++round) {
    if (round % 10 == 0) CHECK(cudaMemPrefetchAsync(values, bytes, gpu, 0, stream));
    launch_advance(values, count, steps, round, stream);
    if (round % 10 == 9) {
      CHECK(cudaMemPrefetchAsync(values, bytes, cpu, 0, stream));
      CHECK(cudaStreamSynchronize(stream));
      must_have_advanced("managed, on the way", values, count, steps, round + 1, 9);
    }
  }
  CHECK(cudaMemcpyAsync(table, values, bytes, cudaMemcpyDefault, stream));
  CHECK(cudaStreamSynchronize(stream));
  must_have_advanced("copied", table, count, steps, rounds, 9);
  print_hash("managed", values, bytes);
  int advice = 0;
  CHECK(cudaMemRangeGetAttribute(&advice, sizeof advice, cudaMemRangeAttributeReadMostly, table, bytes));
  std::printf("read mostly %d\n", advice);
  CHECK(cudaFree(values));
  CHECK(cudaFree(table));
}
