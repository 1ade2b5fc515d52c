// compat: kernels in many streams at the same time, each stream in its own order
// args: 16
// args: 64
// soft: yes
#include "advance.h"

int main(int argc, char** argv) {
  const int streams_wanted = argc > 1 ? std::atoi(argv[1]) : 16;
  const int count = scaled(1 << 15, 1 << 8), steps = work_steps(), rounds = scaled(60, 2);
  std::vector<cudaStream_t> streams(streams_wanted);
  std::vector<std::uint32_t*> values(streams_wanted);
  for (int i = 0; i < streams_wanted; ++i) {
    CHECK(i % 2 ? cudaStreamCreate(&streams[i]) : cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    values[i] = zeros<std::uint32_t>(count);
  }
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < streams_wanted; ++i) launch_advance(values[i], count, steps * (1 + i % 3), round, streams[i]);
  }
  std::uint64_t all = 0;
  for (int i = 0; i < streams_wanted; ++i) {
    CHECK(cudaStreamSynchronize(streams[i]));
    const std::vector<std::uint32_t> got = on_host(values[i], count);
    must_have_advanced("stream", got.data(), count, steps * (1 + i % 3), rounds);
    all = all * 31 + hash_of(got.data(), count * sizeof(std::uint32_t));
  }
  std::printf("%d streams %016llx\n", streams_wanted, static_cast<unsigned long long>(all));
  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
}
