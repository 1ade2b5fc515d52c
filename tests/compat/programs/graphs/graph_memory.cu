// compat: graphs that allocate and free memory by nodes, built by hand and captured
#include "mix.h"

namespace {

constexpr int kCount = 1 << 18, kDepth = 200, kLaunches = 40;
constexpr std::size_t kBytes = kCount * sizeof(unsigned);

void print_result(const char* name, const unsigned* host) {
  int wrong = 0;
  for (unsigned i = 0; i < kCount; i += 997) wrong += host[i] != mix(i, 3, kDepth);
  std::printf("%s %s\n", name, wrong == 0 ? "right" : "WRONG");
  print_hash(name, host, kBytes);
}

cudaGraphNode_t kernel_node(cudaGraph_t graph, cudaGraphNode_t after, void* function, void** arguments) {
  cudaKernelNodeParams parameters = {};
  parameters.func = function;
  parameters.gridDim = dim3(static_cast<unsigned>(blocks_for(kCount)));
  parameters.blockDim = dim3(256);
  parameters.kernelParams = arguments;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, &after, 1, &parameters));
  return node;
}

void by_hand(unsigned* host, cudaStream_t stream) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams allocation = {};
  allocation.poolProps.allocType = cudaMemAllocationTypePinned;
  allocation.poolProps.location.type = cudaMemLocationTypeDevice;
  allocation.poolProps.location.id = 0;
  allocation.bytesize = kBytes;
  cudaGraphNode_t allocated, copy, freed;
  CHECK(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &allocation));
  unsigned* data = static_cast<unsigned*>(allocation.dptr);
  int count = kCount, depth = kDepth;
  unsigned round = 3;
  void* number_arguments[] = {&data, &count};
  void* mix_arguments[] = {&data, &count, &round, &depth};
  cudaGraphNode_t node = kernel_node(graph, allocated, reinterpret_cast<void*>(number_kernel), number_arguments);
  node = kernel_node(graph, node, reinterpret_cast<void*>(mix_kernel), mix_arguments);
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &node, 1, host, data, kBytes, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddMemFreeNode(&freed, graph, &copy, 1, data));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < kLaunches; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  print_result("by hand", host);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

void captured(unsigned* host, cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  unsigned* data = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&data, kBytes, stream));
  number_kernel<<<blocks_for(kCount), 256, 0, stream>>>(data, kCount);
  launch_mix(data, kCount, 3, kDepth, stream);
  CHECK(cudaMemcpyAsync(host, data, kBytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaFreeAsync(data, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < kLaunches; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  print_result("captured", host);
  CHECK(cudaGraphExecDestroy(exec));
}

/// A graph that only allocates; the memory outlives each launch and is freed by the stream.
void kept(unsigned* host, cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  unsigned* data = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMallocAsync(&data, kBytes, stream));
  number_kernel<<<blocks_for(kCount), 256, 0, stream>>>(data, kCount);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < kLaunches; ++i) {
    CHECK(cudaGraphLaunch(exec, stream));
    launch_mix(data, kCount, 3, kDepth, stream);
    CHECK(cudaMemcpyAsync(host, data, kBytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(data, stream));
  }
  CHECK(cudaStreamSynchronize(stream));
  print_result("kept", host);
  CHECK(cudaGraphLaunch(exec, stream));
  std::printf("launched again without a free: %s\n", cudaGetErrorName(cudaGraphLaunch(exec, stream)));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaFree(data));
  CHECK(cudaGraphExecDestroy(exec));
}

}  // namespace

int main() {
  unsigned* host = nullptr;
  CHECK(cudaMallocHost(&host, kBytes));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  by_hand(host, stream);
  captured(host, stream);
  kept(host, stream);
  CHECK(cudaDeviceGraphMemTrim(0));
  return 0;
}
