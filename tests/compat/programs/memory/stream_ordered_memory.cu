// compat: stream-ordered memory that is allocated in one stream, used in others and freed in another
// soft: yes
#include "advance.h"

int main() {
  const int count = work_threads(), steps = work_steps(), rounds = work_rounds();
  const std::size_t bytes = count * sizeof(std::uint32_t);
  cudaStream_t streams[3];
  cudaEvent_t event = nullptr;
  for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  std::vector<std::uint32_t> got(count);
  const auto then = [&](int from, int to) {
    CHECK(cudaEventRecord(event, streams[from]));
    CHECK(cudaStreamWaitEvent(streams[to], event));
  };
  std::uint64_t all = 0;
  for (int round = 0; round < rounds; ++round) {
    std::uint32_t* memory = nullptr;
    CHECK(cudaMallocAsync(&memory, bytes, streams[0]));
    CHECK(cudaMemsetAsync(memory, 0, bytes, streams[0]));
    then(0, 1);
    launch_advance(memory, count, steps, 0, streams[1]);
    launch_advance(memory, count, steps, 1, streams[1]);
    then(1, 2);
    launch_advance(memory, count, steps, 2, streams[2]);
    if (round % 20 == 0) {
      CHECK(cudaMemcpyAsync(got.data(), memory, bytes, cudaMemcpyDeviceToHost, streams[2]));
      CHECK(cudaStreamSynchronize(streams[2]));
      must_have_advanced("ordered", got.data(), count, steps, 3);
      all = all * 31 + hash_of(got.data(), bytes);
    }
    CHECK(cudaFreeAsync(memory, streams[2]));
    then(2, 0);
  }
  CHECK(cudaDeviceSynchronize());
  std::printf("ordered %016llx\n", static_cast<unsigned long long>(all));
}
