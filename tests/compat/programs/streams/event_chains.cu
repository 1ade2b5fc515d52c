// compat: chains of cudaStreamWaitEvent through many streams: lines, forks and joins
// soft: yes
#include "advance.h"

static __global__ void join(std::uint32_t* into, const std::uint32_t* a, const std::uint32_t* b, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) into[i] = a[i] * 31 + b[i];
}

int main() {
  constexpr int kStreams = 8;
  const int count = scaled(1 << 17, 1 << 9), steps = work_steps(), rounds = work_rounds();
  cudaStream_t streams[kStreams];
  cudaEvent_t events[kStreams];
  for (int i = 0; i < kStreams; ++i) {
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
  }
  std::uint32_t *line = zeros<std::uint32_t>(count), *left = zeros<std::uint32_t>(count),
                *right = zeros<std::uint32_t>(count);
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    const int at = round % kStreams, next = (round + 1) % kStreams;
    launch_advance(line, count, steps, round, streams[at]);
    CHECK(cudaEventRecord(events[at], streams[at]));
    CHECK(cudaStreamWaitEvent(streams[next], events[at], 0));
  }
  CHECK(cudaStreamSynchronize(streams[rounds % kStreams]));
  must_have_advanced("line", on_host(line, count).data(), count, steps, rounds);
  for (int round = 0; round < rounds / 2; ++round) {
    CHECK(cudaEventRecord(events[0], streams[0]));
    CHECK(cudaStreamWaitEvent(streams[1], events[0]));
    CHECK(cudaStreamWaitEvent(streams[2], events[0]));
    launch_advance(left, count, steps, round, streams[1]);
    launch_advance(right, count, steps / 2, round, streams[2]);
    CHECK(cudaEventRecord(events[1], streams[1]));
    CHECK(cudaEventRecord(events[2], streams[2]));
    CHECK(cudaStreamWaitEvent(streams[0], events[1]));
    CHECK(cudaStreamWaitEvent(streams[0], events[2]));
    join<<<(count + 255) / 256, 256, 0, streams[0]>>>(line, left, right, count);
  }
  print_device_hash("left", left, count);
  print_device_hash("right", right, count);
  print_device_hash("joined", line, count);
}
