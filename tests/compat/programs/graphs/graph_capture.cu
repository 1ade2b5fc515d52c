// compat: a captured graph of kernels, copies and memory sets, launched many times
// soft: yes
#include "mix.h"

int main() {
  const bool small = on_software();
  const int count = small ? 2048 : 1 << 19, depth = small ? 3 : 300, launches = small ? 5 : 60;
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(unsigned);
  unsigned *data = nullptr, *copy = nullptr, *host = nullptr;
  CHECK(cudaMalloc(&data, bytes));
  CHECK(cudaMalloc(&copy, bytes));
  CHECK(cudaMallocHost(&host, bytes));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  number_kernel<<<blocks_for(count), 256, 0, stream>>>(data, count);
  CHECK(cudaStreamSynchronize(stream));

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (unsigned round = 0; round < 4; ++round) launch_mix(data, count, round, depth, stream);
  CHECK(cudaMemsetAsync(copy, 0xff, bytes, stream));
  CHECK(cudaMemcpyAsync(copy, data, bytes / 2, cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaMemcpyAsync(host, copy, bytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  std::size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  std::printf("nodes %zu\n", nodes);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < launches; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));

  unsigned x = 7;
  for (int i = 0; i < launches; ++i)
    for (unsigned round = 0; round < 4; ++round) x = mix(x, round, depth);
  std::printf("%s %s\n", host[7] == x ? "right" : "WRONG", host[count - 1] == 0xffffffff ? "right" : "WRONG");
  print_hash("copied", host, bytes);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaStreamDestroy(stream));
  return 0;
}
