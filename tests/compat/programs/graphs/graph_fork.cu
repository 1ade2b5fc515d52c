// compat: a capture that forks over streams and joins them again, and one that a wrong call breaks
// soft: yes
#include "mix.h"

int main() {
  const bool small = on_software();
  const int count = small ? 1024 : 1 << 18, depth = small ? 3 : 300, launches = small ? 4 : 30;
  constexpr int kBranches = 5;
  unsigned* data[kBranches];
  cudaStream_t streams[kBranches];
  cudaEvent_t fork, joins[kBranches];
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  for (int i = 0; i < kBranches; ++i) {
    CHECK(cudaMalloc(&data[i], static_cast<std::size_t>(count) * sizeof(unsigned)));
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&joins[i], cudaEventDisableTiming));
    number_kernel<<<blocks_for(count), 256>>>(data[i], count);
  }
  CHECK(cudaDeviceSynchronize());

  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
  launch_mix(data[0], count, 0, depth, streams[0]);
  CHECK(cudaEventRecord(fork, streams[0]));
  for (int i = 1; i < kBranches; ++i) {
    CHECK(cudaStreamWaitEvent(streams[i], fork, 0));
    for (unsigned round = 0; round < static_cast<unsigned>(i); ++round)
      launch_mix(data[i], count, round, depth, streams[i]);
    CHECK(cudaEventRecord(joins[i], streams[i]));
  }
  launch_mix(data[0], count, 1, depth, streams[0]);
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(streams[kBranches - 1], &status));
  std::printf("branch is captured: %s\n", status == cudaStreamCaptureStatusActive ? "yes" : "NO");
  for (int i = 1; i < kBranches; ++i) CHECK(cudaStreamWaitEvent(streams[0], joins[i], 0));
  launch_mix(data[0], count, 2, depth, streams[0]);
  CHECK(cudaStreamEndCapture(streams[0], &graph));
  std::size_t nodes = 0, roots = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  std::printf("nodes %zu, roots %zu\n", nodes, roots);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < launches; ++i) CHECK(cudaGraphLaunch(exec, streams[0]));
  CHECK(cudaStreamSynchronize(streams[0]));
  for (int branch = 0; branch < kBranches; ++branch) {
    std::vector<unsigned> got(static_cast<std::size_t>(count));
    CHECK(cudaMemcpy(got.data(), data[branch], got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned x = 19;
    for (int i = 0; i < launches; ++i)
      for (unsigned round = 0; round < static_cast<unsigned>(branch == 0 ? 3 : branch); ++round)
        x = mix(x, round, depth);
    std::printf("branch %d %s\n", branch, got[19] == x ? "right" : "WRONG");
    print_hash("branch", got.data(), got.size() * sizeof(unsigned));
  }

  cudaGraph_t broken = nullptr;
  CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
  launch_mix(data[0], count, 0, depth, streams[0]);
  std::printf("synchronize: %s\n", cudaGetErrorName(cudaStreamSynchronize(streams[0])));
  std::printf("end: %s\n", cudaGetErrorName(cudaStreamEndCapture(streams[0], &broken)));
  cudaGetLastError();
  launch_mix(data[0], count, 0, depth, streams[0]);
  CHECK(cudaStreamSynchronize(streams[0]));
  return 0;
}
