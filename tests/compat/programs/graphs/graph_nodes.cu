// compat: a graph built by hand of kernel, copy, memory set, host, empty, event and child nodes
#include "mix.h"

namespace {

struct Calls {
  int count = 0;
};

void CUDART_CB count_call(void* calls) {
  ++static_cast<Calls*>(calls)->count;
}

cudaGraphNode_t kernel_node(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, unsigned* data, int count,
                            unsigned round, int depth) {
  void* arguments[] = {&data, &count, &round, &depth};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(mix_kernel);
  parameters.gridDim = dim3(static_cast<unsigned>(blocks_for(count)));
  parameters.blockDim = dim3(256);
  parameters.kernelParams = arguments;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &parameters));
  return node;
}

}  // namespace

int main() {
  constexpr int kCount = 1 << 18, kDepth = 300, kLaunches = 40;
  constexpr std::size_t kBytes = kCount * sizeof(unsigned);
  unsigned *left = nullptr, *right = nullptr, *host = nullptr;
  CHECK(cudaMalloc(&left, kBytes));
  CHECK(cudaMalloc(&right, kBytes));
  CHECK(cudaMallocHost(&host, 2 * kBytes));
  cudaEvent_t begun, halfway;
  CHECK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&halfway, cudaEventDisableTiming));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventRecord(begun, stream));

  // A child: two rounds of the right half.
  cudaGraph_t child, graph;
  CHECK(cudaGraphCreate(&child, 0));
  cudaGraphNode_t first = kernel_node(child, {}, right, kCount, 1, kDepth);
  kernel_node(child, {first}, right, kCount, 2, kDepth);

  CHECK(cudaGraphCreate(&graph, 0));
  Calls calls;
  cudaGraphNode_t wait, set, empty, child_node, host_node, record, copy_left, copy_right, flag;
  CHECK(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, begun));
  cudaMemsetParams memset = {};
  memset.dst = right;
  memset.value = 5;
  memset.elementSize = 4;
  memset.width = kCount;
  memset.height = 1;
  CHECK(cudaGraphAddMemsetNode(&set, graph, &wait, 1, &memset));
  cudaGraphNode_t number;
  int count = kCount;
  void* arguments[] = {&left, &count};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(number_kernel);
  parameters.gridDim = dim3(static_cast<unsigned>(blocks_for(kCount)));
  parameters.blockDim = dim3(256);
  parameters.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&number, graph, &wait, 1, &parameters));
  const cudaGraphNode_t both[] = {set, number};
  CHECK(cudaGraphAddEmptyNode(&empty, graph, both, 2));
  CHECK(cudaGraphAddChildGraphNode(&child_node, graph, &empty, 1, child));
  cudaGraphNode_t mixed = kernel_node(graph, {empty}, left, kCount, 0, kDepth);
  CHECK(cudaGraphAddEventRecordNode(&record, graph, &mixed, 1, halfway));
  mixed = kernel_node(graph, {record}, left, kCount, 1, kDepth);
  const cudaHostNodeParams host_call = {count_call, &calls};
  const cudaGraphNode_t ends[] = {mixed, child_node};
  CHECK(cudaGraphAddHostNode(&host_node, graph, ends, 2, &host_call));
  CHECK(cudaGraphAddMemcpyNode1D(&copy_left, graph, &host_node, 1, host, left, kBytes, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddMemcpyNode1D(&copy_right, graph, nullptr, 0, host + kCount, right, kBytes, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddDependencies(graph, &host_node, &copy_right, nullptr, 1));
  flag = copy_right;
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(flag, &type));
  std::printf("copy node is of type %d\n", static_cast<int>(type));
  std::size_t nodes = 0, edges = 0, roots = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  std::printf("nodes %zu, edges %zu, roots %zu\n", nodes, edges, roots);

  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < kLaunches; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaEventSynchronize(halfway));
  CHECK(cudaStreamSynchronize(stream));
  int wrong = 0;
  const unsigned wanted_right = mix(mix(5, 1, kDepth), 2, kDepth);
  for (unsigned i = 0; i < kCount; i += 997) {
    wrong += host[i] != mix(mix(i, 0, kDepth), 1, kDepth);
    wrong += host[kCount + i] != wanted_right;
  }
  std::printf("%s, host calls %d\n", wrong == 0 ? "right" : "WRONG", calls.count);
  print_hash("both", host, 2 * kBytes);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphDestroy(child));
  return 0;
}
