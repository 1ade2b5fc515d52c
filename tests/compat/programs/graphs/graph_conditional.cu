// compat: conditional graph nodes: IF with an else, WHILE, and SWITCH, set by kernels
#include "mix.h"

namespace {

constexpr int kCount = 1 << 16, kDepth = 100;

__global__ void set_flag(cudaGraphConditionalHandle handle, unsigned value) {
  cudaGraphSetConditional(handle, value);
}

/// Counts down and goes on while it has not reached 0.
__global__ void count_down(cudaGraphConditionalHandle handle, unsigned* left) {
  *left -= 1;
  cudaGraphSetConditional(handle, *left != 0);
}

cudaStream_t stream;

/// The node's graphs: `size` of them, behind all that `graph` has.
std::vector<cudaGraph_t> conditional(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle handle,
                                     cudaGraphConditionalNodeType type, unsigned size) {
  cudaGraphNodeParams parameters = {};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = size;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddNode(&node, graph, &after, nullptr, 1, &parameters));
  return {parameters.conditional.phGraph_out, parameters.conditional.phGraph_out + size};
}

cudaGraphNode_t flag_node(cudaGraph_t graph, cudaGraphConditionalHandle handle, unsigned value) {
  void* arguments[] = {&handle, &value};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(set_flag);
  parameters.gridDim = parameters.blockDim = dim3(1);
  parameters.kernelParams = arguments;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  return node;
}

void fill(cudaGraph_t body, unsigned* data, unsigned round) {
  CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
  launch_mix(data, kCount, round, kDepth, stream);
  CHECK(cudaStreamEndCapture(stream, nullptr));
}

void launch(cudaGraph_t graph, int times) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < times; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

/// Element 9 after `rounds`, from 9.
void print_result(const char* name, unsigned* data, const std::vector<unsigned>& rounds) {
  std::vector<unsigned> got(kCount);
  CHECK(cudaMemcpy(got.data(), data, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  unsigned x = 9;
  for (const unsigned round : rounds) x = mix(x, round, kDepth);
  std::printf("%s %s\n", name, got[9] == x ? "right" : "WRONG");
  print_hash(name, got.data(), kCount * sizeof(unsigned));
  number_kernel<<<blocks_for(kCount), 256>>>(data, kCount);
  CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main() {
  unsigned *data = nullptr, *left = nullptr;
  CHECK(cudaMalloc(&data, kCount * sizeof(unsigned)));
  CHECK(cudaMalloc(&left, sizeof(unsigned)));
  CHECK(cudaStreamCreate(&stream));
  number_kernel<<<blocks_for(kCount), 256>>>(data, kCount);
  CHECK(cudaDeviceSynchronize());

  for (const unsigned taken : {1u, 0u}) {
    cudaGraph_t graph;
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    const std::vector<cudaGraph_t> bodies =
        conditional(graph, flag_node(graph, handle, taken), handle, cudaGraphCondTypeIf, 2);
    fill(bodies[0], data, 1);
    fill(bodies[1], data, 2);
    launch(graph, 3);
    const unsigned round = taken ? 1 : 2;
    print_result(taken ? "if" : "else", data, {round, round, round});
  }

  {
    cudaGraph_t graph;
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaMemsetParams memset = {};
    memset.dst = left;
    memset.value = 50;
    memset.elementSize = 4;
    memset.width = memset.height = 1;
    cudaGraphNode_t set;
    CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &memset));
    const std::vector<cudaGraph_t> bodies = conditional(graph, set, handle, cudaGraphCondTypeWhile, 1);
    CHECK(cudaStreamBeginCaptureToGraph(stream, bodies[0], nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal));
    launch_mix(data, kCount, 4, kDepth, stream);
    count_down<<<1, 1, 0, stream>>>(handle, left);
    CHECK(cudaStreamEndCapture(stream, nullptr));
    launch(graph, 2);
    print_result("while", data, std::vector<unsigned>(100, 4));
  }

  for (const unsigned way : {0u, 2u, 7u}) {
    cudaGraph_t graph;
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    const std::vector<cudaGraph_t> bodies =
        conditional(graph, flag_node(graph, handle, way), handle, cudaGraphCondTypeSwitch, 3);
    for (unsigned i = 0; i < 3; ++i) fill(bodies[i], data, 10 + i);
    launch(graph, 1);
    print_result("switch", data, way < 3 ? std::vector<unsigned>{10 + way} : std::vector<unsigned>{});
  }
  return 0;
}
