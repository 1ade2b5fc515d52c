// compat: graphs launched many times in several streams, by turns and beside ordinary launches
// soft: yes
#include "mix.h"

int main() {
  const bool small = on_software();
  const int count = small ? 1024 : 1 << 18, depth = small ? 3 : 300;
  const unsigned turns = small ? 4 : 50;
  constexpr int kStreams = 4;
  cudaStream_t streams[kStreams];
  cudaGraphExec_t execs[kStreams];
  unsigned* data[kStreams];
  for (int i = 0; i < kStreams; ++i) {
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CHECK(cudaMalloc(&data[i], static_cast<std::size_t>(count) * sizeof(unsigned)));
    number_kernel<<<blocks_for(count), 256, 0, streams[i]>>>(data[i], count);
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeThreadLocal));
    for (unsigned round = 0; round < 2; ++round) launch_mix(data[i], count, round, depth, streams[i]);
    CHECK(cudaStreamEndCapture(streams[i], &graph));
    CHECK(cudaGraphInstantiate(&execs[i], graph, 0));
    CHECK(cudaGraphUpload(execs[i], streams[i]));
    CHECK(cudaGraphDestroy(graph));
  }
  // Each executable graph goes through all the streams; an event keeps its turns in order.
  cudaEvent_t done[kStreams];
  for (cudaEvent_t& event : done) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int i = 0; i < kStreams; ++i) CHECK(cudaEventRecord(done[i], streams[i]));
  for (unsigned turn = 0; turn < turns; ++turn)
    for (unsigned i = 0; i < kStreams; ++i) {
      const cudaStream_t stream = streams[(i + turn) % kStreams];
      CHECK(cudaStreamWaitEvent(stream, done[i], 0));
      CHECK(cudaGraphLaunch(execs[i], stream));
      launch_mix(data[i], count, 2, depth, stream);
      CHECK(cudaEventRecord(done[i], stream));
    }
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kStreams; ++i) {
    std::vector<unsigned> got(static_cast<std::size_t>(count));
    CHECK(cudaMemcpy(got.data(), data[i], got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned x = 13;
    for (unsigned turn = 0; turn < turns; ++turn)
      for (unsigned round = 0; round < 3; ++round) x = mix(x, round, depth);
    std::printf("graph %d %s\n", i, got[13] == x ? "right" : "WRONG");
    print_hash("graph", got.data(), got.size() * sizeof(unsigned));
    CHECK(cudaGraphExecDestroy(execs[i]));
    CHECK(cudaStreamDestroy(streams[i]));
  }
  return 0;
}
