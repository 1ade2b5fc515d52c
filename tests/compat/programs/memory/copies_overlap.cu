// compat: copies both ways overlap kernels in many streams, pinned and pageable, with frees and events between
// args: pinned
// args: pageable
// soft: yes
#include <cstring>

#include "advance.h"

int main(int argc, char** argv) {
  const bool pinned = argc < 2 || std::strcmp(argv[1], "pinned") == 0;
  constexpr int kStreams = 16;
  const int count = scaled(1 << 17, 1 << 8), steps = work_steps() / 2, rounds = scaled(40, 2);
  const std::size_t bytes = count * sizeof(std::uint32_t);
  struct Lane {
    cudaStream_t stream;
    cudaEvent_t done;
    std::uint32_t *device, *in, *out;
  } lanes[kStreams];
  for (int i = 0; i < kStreams; ++i) {
    Lane& lane = lanes[i];
    CHECK(cudaStreamCreateWithFlags(&lane.stream, i % 4 == 3 ? cudaStreamDefault : cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&lane.done, cudaEventDisableTiming));
    lane.device = zeros<std::uint32_t>(count);
    for (std::uint32_t** host : {&lane.in, &lane.out}) {
      if (pinned) CHECK(cudaMallocHost(host, bytes));
      if (!pinned) *host = static_cast<std::uint32_t*>(std::malloc(bytes));
      std::memset(*host, 0, bytes);
    }
  }
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kStreams; ++i) {
      Lane& lane = lanes[i];
      // What came out in the last round goes in again: host memory is part of the chain.
      CHECK(cudaStreamSynchronize(lane.stream));
      std::swap(lane.in, lane.out);
      CHECK(cudaMemcpyAsync(lane.device, lane.in, bytes, cudaMemcpyHostToDevice, lane.stream));
      launch_advance(lane.device, count, steps, 2 * round, lane.stream);
      CHECK(cudaEventRecord(lane.done, lane.stream));
      CHECK(cudaStreamWaitEvent(lanes[(i + 1) % kStreams].stream, lane.done));
      launch_advance(lane.device, count, steps, 2 * round + 1, lane.stream);
      CHECK(cudaMemcpyAsync(lane.out, lane.device, bytes, cudaMemcpyDeviceToHost, lane.stream));
    }
    if (round % 8 == 7) {  // a free waits for the device in the middle of it
      void* memory = nullptr;
      CHECK(cudaMalloc(&memory, 1 << 20));
      CHECK(cudaFree(memory));
    }
  }
  std::uint64_t all = 0;
  for (Lane& lane : lanes) {
    CHECK(cudaStreamSynchronize(lane.stream));
    must_have_advanced("lane", lane.out, count, steps, 2 * rounds);
    all = all * 31 + hash_of(lane.out, bytes);
  }
  std::printf("%s %016llx\n", pinned ? "pinned" : "pageable", static_cast<unsigned long long>(all));
}
