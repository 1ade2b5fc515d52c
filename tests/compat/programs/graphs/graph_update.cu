// compat: executable graphs changed: whole updates, kernel parameters, disabled nodes, and an update that does not fit
// soft: yes
#include "mix.h"

namespace {

int count, depth;
cudaStream_t stream;

cudaGraph_t capture(unsigned* data, unsigned first, int kernels) {
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < kernels; ++i) launch_mix(data, count, first + static_cast<unsigned>(i), depth, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

}  // namespace

int main() {
  const bool small = on_software();
  count = small ? 1024 : 1 << 18, depth = small ? 3 : 300;
  const int turns = small ? 4 : 40;
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(unsigned)));
  CHECK(cudaStreamCreate(&stream));
  number_kernel<<<blocks_for(count), 256, 0, stream>>>(data, count);
  CHECK(cudaStreamSynchronize(stream));
  unsigned x = 11;

  cudaGraph_t graph = capture(data, 0, 3);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int turn = 0; turn < turns; ++turn) {
    const unsigned first = static_cast<unsigned>(turn) * 3;
    cudaGraph_t next = capture(data, first, 3);
    cudaGraphExecUpdateResultInfo info = {};
    CHECK(cudaGraphExecUpdate(exec, next, &info));
    CHECK(cudaGraphDestroy(next));
    CHECK(cudaGraphLaunch(exec, stream));
    for (unsigned i = 0; i < 3; ++i) x = mix(x, first + i, depth);
  }

  // Back to the first, then its nodes one by one.
  cudaGraphExecUpdateResultInfo info = {};
  CHECK(cudaGraphExecUpdate(exec, graph, &info));
  std::size_t nodes = 3;
  cudaGraphNode_t node[3];
  CHECK(cudaGraphGetNodes(graph, node, &nodes));
  for (int turn = 0; turn < turns; ++turn) {
    unsigned round = 1000 + static_cast<unsigned>(turn);
    void* arguments[] = {&data, &count, &round, &depth};
    cudaKernelNodeParams parameters = {};
    parameters.func = reinterpret_cast<void*>(mix_kernel);
    parameters.gridDim = dim3(static_cast<unsigned>(blocks_for(count)));
    parameters.blockDim = dim3(256);
    parameters.kernelParams = arguments;
    for (const cudaGraphNode_t one : node) CHECK(cudaGraphExecKernelNodeSetParams(exec, one, &parameters));
    CHECK(cudaGraphNodeSetEnabled(exec, node[1], turn % 2));
    CHECK(cudaGraphLaunch(exec, stream));
    for (int i = 0; i < (turn % 2 ? 3 : 2); ++i) x = mix(x, round, depth);
  }
  CHECK(cudaStreamSynchronize(stream));
  std::vector<unsigned> got(static_cast<std::size_t>(count));
  CHECK(cudaMemcpy(got.data(), data, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  std::printf("updated %s\n", got[11] == x ? "right" : "WRONG");
  print_hash("updated", got.data(), got.size() * sizeof(unsigned));

  cudaGraph_t longer = capture(data, 0, 4);
  const cudaError_t refused = cudaGraphExecUpdate(exec, longer, &info);
  std::printf("another shape: %s, result %d\n", cudaGetErrorName(refused), static_cast<int>(info.result));
  cudaGetLastError();
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphDestroy(longer));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphExecDestroy(exec));
  return 0;
}
