// Shared by the tests of graphs: nodes for the kernels of the fixture, and running a graph once.
#pragma once

#include <vector>

#include "softgpu/api/fixture.h"

namespace gpuctl::softgpu {

class GraphTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuGraphCreate(&graph_, 0));
  }

  /// Parameters of a kernel with one block of one thread.
  CUDA_KERNEL_NODE_PARAMS kernel(const char* name, void** values) {
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = function(name);
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = values;
    return params;
  }

  /// store: *word = value.
  CUgraphNode add_store(CUgraph graph, const std::vector<CUgraphNode>& after, Word* word, unsigned value) {
    void* values[] = {&word, &value};
    const CUDA_KERNEL_NODE_PARAMS params = kernel("store", values);
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
    return node;
  }

  /// mark: *slot = (*next)++.
  CUgraphNode add_mark(CUgraph graph, const std::vector<CUgraphNode>& after, Word* next, Word* slot) {
    void* values[] = {&next, &slot};
    const CUDA_KERNEL_NODE_PARAMS params = kernel("mark", values);
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
    return node;
  }

  /// wait_for: ends when *flag != 0.
  CUgraphNode add_wait(CUgraph graph, const std::vector<CUgraphNode>& after, Word* flag) {
    void* values[] = {&flag};
    const CUDA_KERNEL_NODE_PARAMS params = kernel("wait_for", values);
    CUgraphNode node = nullptr;
    EXPECT_CU(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
    return node;
  }

  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_CU(cuGraphInstantiate(&exec, graph, 0));
    return exec;
  }

  void launch_and_wait(CUgraphExec exec) {
    EXPECT_CU(cuGraphLaunch(exec, stream_));
    EXPECT_CU(cuStreamSynchronize(stream_));
  }

  void run(CUgraph graph) {
    CUgraphExec exec = instantiate(graph);
    launch_and_wait(exec);
    EXPECT_CU(cuGraphExecDestroy(exec));
  }

  static std::vector<CUgraphNode> nodes_of(CUgraph graph) {
    std::size_t count = 0;
    EXPECT_CU(cuGraphGetNodes(graph, nullptr, &count));
    std::vector<CUgraphNode> nodes(count);
    EXPECT_CU(cuGraphGetNodes(graph, nodes.data(), &count));
    return nodes;
  }

  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
};

}  // namespace gpuctl::softgpu
