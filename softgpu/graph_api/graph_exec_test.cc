#include "softgpu/graph_api/graph_fixture.h"

namespace gpuctl::softgpu {
namespace {

class GraphExecApi : public GraphTest {
 protected:
  CUDA_KERNEL_NODE_PARAMS changed_store(CUgraphNode node, Word** word, unsigned* value) {
    values_[0] = word;
    values_[1] = value;
    CUDA_KERNEL_NODE_PARAMS params{};
    EXPECT_CU(cuGraphKernelNodeGetParams(node, &params));
    params.kernelParams = values_;
    return params;
  }

  CUresult update(CUgraphExec exec, CUgraph graph) { return cuGraphExecUpdate(exec, graph, &info_); }

  CUgraph new_graph() {
    CUgraph graph = nullptr;
    EXPECT_CU(cuGraphCreate(&graph, 0));
    return graph;
  }

  void* values_[2] = {};
  CUgraphExecUpdateResultInfo info_{};
};

TEST_F(GraphExecApi, LaunchesOfOneFollowEachOther) {
  Word* word = words(8);
  add_wait(graph_, {}, word);
  add_mark(graph_, {nodes_of(graph_)[0]}, word + 1, word + 2);
  const CUgraphExec exec = instantiate(graph_);
  CUstream other = nullptr;
  ASSERT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuGraphLaunch(exec, other));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(word[1], 0U);
  word[0] = 1;
  EXPECT_CU(cuStreamSynchronize(other));
  EXPECT_EQ(word[1], 2U);  // so the first has ended too
  EXPECT_CU(cuStreamSynchronize(stream_));
}

TEST_F(GraphExecApi, DifferentOnesDoNotWaitForEachOther) {
  Word* word = words(4);
  add_wait(graph_, {}, word);
  const CUgraph second = new_graph();
  add_store(second, {}, word, 1);
  const CUgraphExec first_exec = instantiate(graph_);
  const CUgraphExec second_exec = instantiate(second);
  CUstream other = nullptr;
  ASSERT_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(cuGraphLaunch(first_exec, stream_));
  EXPECT_CU(cuGraphLaunch(second_exec, other));
  EXPECT_CU(cuStreamSynchronize(stream_));
}

TEST_F(GraphExecApi, ALaunchKeepsTheOrderOfItsStream) {
  Word* word = words(4);
  void* before[] = {&word};
  Word* next = word + 1;
  Word* slots[] = {word + 2, word + 3};
  add_mark(graph_, {}, next, slots[0]);
  const CUgraphExec exec = instantiate(graph_);
  EXPECT_CU(cuLaunchKernel(function("wait_for"), 1, 1, 1, 1, 1, 1, 0, stream_, before, nullptr));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(launch_mark(next, slots[1], stream_));
  usleep(2000);
  EXPECT_EQ(*next, 0U);
  *word = 1;
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(*slots[0], 0U);
  EXPECT_EQ(*slots[1], 1U);
}

TEST_F(GraphExecApi, RunsAgainAndAgainAndAfterItsGraphIsGone) {
  Word* word = words(4);
  const CUgraphNode first = add_mark(graph_, {}, word, word + 1);
  add_mark(graph_, {first}, word, word + 2);
  add_mark(graph_, {first}, word, word + 3);
  const CUgraphExec exec = instantiate(graph_);
  EXPECT_CU(cuGraphDestroy(graph_));
  for (int i = 0; i < 100; ++i) EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuGraphExecDestroy(exec));  // while they run
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(word[0], 300U);
}

TEST_F(GraphExecApi, KernelParametersChangeForLaterLaunches) {
  Word* word = words(3);
  const CUgraphNode gate = add_wait(graph_, {}, word);
  const CUgraphNode node = add_store(graph_, {gate}, word + 1, 5);
  const CUgraphExec exec = instantiate(graph_);
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  Word* target = word + 2;
  unsigned value = 6;
  const CUDA_KERNEL_NODE_PARAMS params = changed_store(node, &target, &value);
  EXPECT_CU(cuGraphExecKernelNodeSetParams(exec, node, &params));
  word[0] = 1;
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(word[1], 5U);  // the launch under way uses the old parameters
  EXPECT_EQ(word[2], 0U);
  word[1] = 0;
  launch_and_wait(exec);
  EXPECT_EQ(word[1], 0U);
  EXPECT_EQ(word[2], 6U);
  launch_and_wait(instantiate(graph_));
  EXPECT_EQ(word[1], 5U);  // the graph is not changed either
}

TEST_F(GraphExecApi, OnlyNodesOfItsGraphCanBeChanged) {
  Word* word = words(1);
  const CUgraphNode node = add_store(graph_, {}, word, 1);
  CUgraph clone = nullptr;
  ASSERT_CU(cuGraphClone(&clone, graph_));
  const CUgraphExec exec = instantiate(clone);
  unsigned value = 2;
  const CUDA_KERNEL_NODE_PARAMS params = changed_store(node, &word, &value);
  EXPECT_EQ(cuGraphExecKernelNodeSetParams(exec, node, &params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuGraphExecKernelNodeSetParams(exec, nodes_of(clone)[0], &params));
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 2U);
}

TEST_F(GraphExecApi, OtherParametersChange) {
  Word* word = words(4);
  const auto address = reinterpret_cast<CUdeviceptr>(word);
  CUDA_MEMSET_NODE_PARAMS set{address, 0, 1, 4, 1, 1};
  CUgraphNode set_node = nullptr;
  ASSERT_CU(cuGraphAddMemsetNode(&set_node, graph_, nullptr, 0, &set, context_));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = address;
  copy.dstDevice = address + 4;
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;
  CUgraphNode copy_node = nullptr;
  ASSERT_CU(cuGraphAddMemcpyNode(&copy_node, graph_, &set_node, 1, &copy, context_));
  CUDA_HOST_NODE_PARAMS host{[](void* data) { ++*static_cast<Word*>(data); }, word + 2};
  CUgraphNode host_node = nullptr;
  ASSERT_CU(cuGraphAddHostNode(&host_node, graph_, &copy_node, 1, &host));
  const CUgraphExec exec = instantiate(graph_);
  set.value = 7;
  host.userData = word + 3;
  EXPECT_CU(cuGraphExecMemsetNodeSetParams(exec, set_node, &set, context_));
  EXPECT_CU(cuGraphExecHostNodeSetParams(exec, host_node, &host));
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 7U);
  EXPECT_EQ(word[1], 7U);
  EXPECT_EQ(word[2], 0U);
  EXPECT_EQ(word[3], 1U);
  copy.dstDevice = address + 8;
  EXPECT_CU(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, context_));
  launch_and_wait(exec);
  EXPECT_EQ(word[2], 7U);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = word;
  EXPECT_EQ(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, context_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphExecMemsetNodeSetParams(exec, copy_node, &set, context_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphExecApi, DisabledNodesDoNothing) {
  Word* word = words(3);
  const CUgraphNode first = add_store(graph_, {}, word, 1);
  add_store(graph_, {first}, word + 1, 1);
  const CUgraphExec exec = instantiate(graph_);
  unsigned enabled = 7;
  EXPECT_CU(cuGraphNodeSetEnabled(exec, first, 0));
  EXPECT_CU(cuGraphNodeGetEnabled(exec, first, &enabled));
  EXPECT_EQ(enabled, 0U);
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 0U);
  EXPECT_EQ(word[1], 1U);
  EXPECT_CU(cuGraphNodeSetEnabled(exec, first, 1));
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 1U);
  CUgraphNode empty = nullptr;
  EXPECT_CU(cuGraphAddEmptyNode(&empty, graph_, nullptr, 0));
  EXPECT_EQ(cuGraphNodeSetEnabled(exec, empty, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphExecApi, UpdatesFromAGraphOfTheSameShape) {
  Word* word = words(4);
  const CUgraphNode first = add_store(graph_, {}, word, 1);
  add_store(graph_, {first}, word + 1, 1);
  add_store(graph_, {first}, word + 2, 1);
  const CUgraphExec exec = instantiate(graph_);
  const CUgraph same = new_graph();
  const CUgraphNode other = add_store(same, {}, word, 2);
  add_store(same, {other}, word + 1, 3);
  add_mark(same, {other}, word + 2, word + 3);
  EXPECT_CU(update(exec, same));
  EXPECT_EQ(info_.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  launch_and_wait(exec);
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 2U);
  EXPECT_EQ(word[1], 3U);
  EXPECT_EQ(word[2], 2U);
  EXPECT_EQ(word[3], 1U);
}

TEST_F(GraphExecApi, RefusesUpdatesFromAnotherShape) {
  Word* word = words(2);
  const CUgraphNode first = add_store(graph_, {}, word, 1);
  add_store(graph_, {first}, word + 1, 1);
  const CUgraphExec exec = instantiate(graph_);

  const CUgraph more = new_graph();
  add_store(more, {}, word, 2);
  EXPECT_EQ(update(exec, more), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info_.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(info_.errorNode, nullptr);
  add_store(more, {}, word, 2);
  EXPECT_EQ(update(exec, more), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info_.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

  const CUgraph typed = new_graph();
  const CUgraphNode store = add_store(typed, {}, word, 2);
  CUgraphNode empty = nullptr;
  EXPECT_CU(cuGraphAddEmptyNode(&empty, typed, &store, 1));
  EXPECT_EQ(update(exec, typed), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT_EQ(info_.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_EQ(info_.errorNode, empty);
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 1U);  // the update was not applied in part
}

TEST_F(GraphExecApi, UpdatesReachChildGraphs) {
  Word* word = words(2);
  const CUgraph child = new_graph();
  add_store(child, {}, word, 1);
  CUgraphNode node = nullptr;
  ASSERT_CU(cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, child));
  const CUgraphExec exec = instantiate(graph_);
  const CUgraph other = new_graph();
  add_store(other, {}, word, 5);
  EXPECT_CU(cuGraphExecChildGraphNodeSetParams(exec, node, other));
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 5U);
  EXPECT_CU(update(exec, graph_));
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 1U);
  CUgraph embedded = nullptr;
  ASSERT_CU(cuGraphChildGraphNodeGetGraph(node, &embedded));
  unsigned value = 8;
  const CUDA_KERNEL_NODE_PARAMS params = changed_store(nodes_of(embedded)[0], &word, &value);
  EXPECT_CU(cuGraphExecKernelNodeSetParams(exec, nodes_of(embedded)[0], &params));
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 8U);
  add_store(other, {}, word, 5);
  EXPECT_EQ(cuGraphExecChildGraphNodeSetParams(exec, node, other), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphExecApi, WideGraphsRun) {
  Word* word = words(203);
  std::vector<CUgraphNode> middle;
  const CUgraphNode first = add_mark(graph_, {}, word, word + 1);
  for (std::size_t i = 0; i < 200; ++i) middle.push_back(add_mark(graph_, {first}, word, word + 3 + i));
  add_mark(graph_, middle, word, word + 2);
  const CUgraphExec exec = instantiate(graph_);
  launch_and_wait(exec);
  EXPECT_EQ(word[0], 202U);
  EXPECT_EQ(word[1], 0U);
  EXPECT_EQ(word[2], 201U);
}

TEST_F(GraphExecApi, AFaultEndsTheLaunch) {
  const CUgraphNode bad = add_store(graph_, {}, nullptr, 1);
  Word* word = words(1);
  add_store(graph_, {bad}, word, 1);
  const CUgraphExec exec = instantiate(graph_);
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(word[0], 0U);
}

TEST_F(GraphExecApi, RefusesWhatItCannotDo) {
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&exec, graph_, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuGraphInstantiate(&exec, graph_, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphInstantiate(&exec, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuGraphInstantiate(&exec, graph_, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
  cuuint64_t flags = 0;
  EXPECT_CU(cuGraphExecGetFlags(exec, &flags));
  EXPECT_EQ(flags, static_cast<cuuint64_t>(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
  EXPECT_CU(cuGraphUpload(exec, stream_));
  launch_and_wait(exec);  // an empty graph
}

}  // namespace
}  // namespace gpuctl::softgpu
