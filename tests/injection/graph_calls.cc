// What else there is about graphs, beside what ../driver/graph_storm.cc does: nodes of any type, captures to a graph,
// parts that change. Answers and results are looked at as in calls.cc.
#include <vector>

#include "../driver/graph_work.h"

namespace {

constexpr unsigned kRounds = 22;

CUstream stream;
unsigned results = 0, wrong = 0;

void expect(const Buffer& buffer, const Words& expected) {
  DRIVER_CHECK(cuStreamSynchronize(stream));
  ++results;
  if (!buffer.holds(expected)) ++wrong;
}

CUgraphNodeParams kernel_params(CUfunction function, CUkernel kernel, void** values) {
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = function;
  params.kernel.kern = kernel;
  params.kernel.gridDimX = kBlocks;
  params.kernel.blockDimX = kThreads;
  params.kernel.gridDimY = params.kernel.gridDimZ = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.kernelParams = values;
  return params;
}

CUgraph stepping(Buffer& buffer, unsigned add) {
  return capture(stream, [&] { step(buffer, add, stream); });
}

/// A kernel of a library, a child graph, and a capture behind both, made executable with one function or the other.
void round(CUkernel kernel, unsigned number) {
  Buffer buffer;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr, child_node = nullptr, superfluous = nullptr;
  CUgraphExec executable = nullptr;
  unsigned add = number, iterations = kIterations;
  void* values[] = {&buffer.device, &add, &iterations};
  CUgraphNodeParams params = kernel_params(nullptr, kernel, values);
  DRIVER_CHECK(cuGraphCreate(&graph, 0));
  DRIVER_CHECK(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &params));
  const CUgraph child = stepping(buffer, 5);
  DRIVER_CHECK(cuGraphAddChildGraphNode(&child_node, graph, &node, 1, child));
  DRIVER_CHECK(cuGraphDestroy(child));
  DRIVER_CHECK(
      cuStreamBeginCaptureToGraph(stream, graph, &child_node, nullptr, 1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  download(buffer, stream);
  DRIVER_CHECK(cuStreamEndCapture(stream, &graph));
  DRIVER_CHECK(cuGraphAddNode_v2(&superfluous, graph, &child_node, nullptr, 1, &params));
  DRIVER_CHECK(cuGraphDestroyNode(superfluous));

  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  DRIVER_CHECK(number % 2 ? cuGraphInstantiateWithParams(&executable, graph, &how)
                          : cuGraphInstantiate(&executable, graph, 0));
  buffer.fill(number);
  upload(buffer, stream);
  DRIVER_CHECK(cuGraphLaunch(executable, stream));
  Words expected = counted_from(number);
  step(expected, add);
  step(expected, 5);
  expect(buffer, expected);

  add = 77;
  const CUgraph other = stepping(buffer, 9);
  DRIVER_CHECK(cuGraphExecNodeSetParams(executable, node, &params));
  DRIVER_CHECK(cuGraphExecChildGraphNodeSetParams(executable, child_node, other));
  DRIVER_CHECK(cuGraphLaunch(executable, stream));
  step(expected, 77);
  step(expected, 9);
  expect(buffer, expected);

  DRIVER_CHECK(cuGraphDestroy(other));
  DRIVER_CHECK(cuGraphExecDestroy(executable));
  DRIVER_CHECK(cuGraphDestroy(graph));
  DRIVER_CHECK(cuMemFree(buffer.device));
  DRIVER_CHECK(cuMemFreeHost(buffer.host));
}

}  // namespace

int main() {
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  DRIVER_CHECK(cuLibraryLoadData(&library, kGraphPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  DRIVER_CHECK(cuLibraryGetKernel(&kernel, library, "step"));
  step_kernel = load_kernel(kGraphPtx, "step");
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (unsigned number = 0; number < kRounds; ++number) round(kernel, number);
  std::printf("graph_calls: %u results, %u wrong\n", results, wrong);
  return wrong == 0 ? 0 : 3;
}
