// compat: streams of each priority, and what they say of it
// soft: yes
#include "advance.h"

int main() {
  int least = 0, greatest = 0;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  must(greatest <= least, "a greater priority is a smaller number");
  const int count = scaled(1 << 17, 1 << 9), steps = work_steps(), rounds = work_rounds() / 2 + 1;
  std::vector<cudaStream_t> streams;
  std::vector<std::uint32_t*> values;
  for (int priority = least; priority >= greatest; --priority) {
    cudaStream_t stream = nullptr;
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
    int said = 1;
    unsigned flags = 0;
    CHECK(cudaStreamGetPriority(stream, &said));
    CHECK(cudaStreamGetFlags(stream, &flags));
    must(said <= least && said >= greatest, "the priority is in the range");
    must(flags == cudaStreamNonBlocking, "the flags are those that were asked for");
    streams.push_back(stream);
    values.push_back(zeros<std::uint32_t>(count));
  }
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < streams.size(); ++i) launch_advance(values[i], count, steps, round, streams[i]);
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::vector<std::uint32_t> got = on_host(values[i], count);
    must_have_advanced("priority", got.data(), count, steps, rounds);
    if (i == 0) print_hash("values", got.data(), count * sizeof(std::uint32_t));
  }
}
