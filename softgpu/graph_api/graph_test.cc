#include "softgpu/graph_api/graph_fixture.h"

namespace gpuctl::softgpu {
namespace {

using GraphApi = GraphTest;

TEST_F(GraphApi, NodesRunAfterWhatTheyDependOn) {
  Word* word = words(8);
  const CUgraphNode first = add_mark(graph_, {}, word, word + 1);
  const CUgraphNode left = add_mark(graph_, {first}, word, word + 2);
  const CUgraphNode right = add_mark(graph_, {first}, word, word + 3);
  add_mark(graph_, {left, right}, word, word + 4);
  run(graph_);
  EXPECT_EQ(word[0], 4U);
  EXPECT_EQ(word[1], 0U);
  EXPECT_EQ(word[2] + word[3], 3U);
  EXPECT_EQ(word[4], 3U);
}

TEST_F(GraphApi, IndependentBranchesRunAtTheSameTime) {
  Word* word = words(3);
  add_wait(graph_, {}, word);
  add_wait(graph_, {}, word + 1);
  add_store(graph_, {add_store(graph_, {}, word, 1)}, word + 1, 1);
  run(graph_);  // does not end if a node waits for an older one
  EXPECT_EQ(word[1], 1U);
}

TEST_F(GraphApi, CopiesSetsAndHostFunctions) {
  Word* word = words(64);
  const auto address = reinterpret_cast<CUdeviceptr>(word);
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = address + 4;
  set.pitch = 16;
  set.value = 0xab;
  set.elementSize = 4;
  set.width = 2;
  set.height = 2;
  CUgraphNode set_node = nullptr;
  ASSERT_CU(cuGraphAddMemsetNode(&set_node, graph_, nullptr, 0, &set, context_));
  std::vector<unsigned> host(4);
  host.reserve(8);  // so that its bytes do not move
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = address;
  copy.srcXInBytes = 4;
  copy.srcPitch = 16;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host.data();
  copy.WidthInBytes = 8;
  copy.Height = 2;
  copy.Depth = 1;
  CUgraphNode copy_node = nullptr;
  ASSERT_CU(cuGraphAddMemcpyNode(&copy_node, graph_, &set_node, 1, &copy, context_));
  CUDA_HOST_NODE_PARAMS call{};
  call.fn = [](void* data) { static_cast<std::vector<unsigned>*>(data)->push_back(1); };
  call.userData = &host;
  CUgraphNode host_node = nullptr;
  ASSERT_CU(cuGraphAddHostNode(&host_node, graph_, &copy_node, 1, &call));
  run(graph_);
  EXPECT_EQ(host, (std::vector<unsigned>{0xab, 0xab, 0xab, 0xab, 1}));
  EXPECT_EQ(word[0], 0U);
  EXPECT_EQ(word[3], 0U);
  EXPECT_EQ(word[5], 0xabU);

  CUDA_MEMSET_NODE_PARAMS shown_set{};
  EXPECT_CU(cuGraphMemsetNodeGetParams(set_node, &shown_set));
  EXPECT_EQ(shown_set.dst, set.dst);
  EXPECT_EQ(shown_set.height, 2U);
  set.value = 0xcd;
  EXPECT_CU(cuGraphMemsetNodeSetParams(set_node, &set));
  CUDA_MEMCPY3D shown_copy{};
  EXPECT_CU(cuGraphMemcpyNodeGetParams(copy_node, &shown_copy));
  EXPECT_EQ(shown_copy.dstHost, host.data());
  CUDA_HOST_NODE_PARAMS shown_call{};
  EXPECT_CU(cuGraphHostNodeGetParams(host_node, &shown_call));
  EXPECT_EQ(shown_call.userData, &host);
  EXPECT_EQ(cuGraphHostNodeGetParams(copy_node, &shown_call), CUDA_ERROR_INVALID_VALUE);
  run(graph_);
  EXPECT_EQ(host[3], 0xcdU);
}

TEST_F(GraphApi, WrongParametersAreRefused) {
  CUgraphNode node = nullptr;
  CUDA_MEMSET_NODE_PARAMS set{64, 0, 0, 4, 1, 1};
  EXPECT_EQ(cuGraphAddMemsetNode(&node, graph_, nullptr, 0, &set, context_), CUDA_ERROR_INVALID_VALUE);
  Word* word = words(1);
  void* values[] = {&word, nullptr};
  CUDA_KERNEL_NODE_PARAMS params = kernel("store", values);
  EXPECT_EQ(cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  unsigned value = 0;
  values[1] = &value;
  params.blockDimX = 2000;
  EXPECT_EQ(cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(nodes_of(graph_).empty());
  const CUgraphNode good = add_store(graph_, {}, word, 1);
  const CUgraphNode twice[] = {good, good};
  EXPECT_EQ(cuGraphAddEmptyNode(&node, graph_, twice, 2), CUDA_ERROR_INVALID_VALUE);
  CUgraph other = nullptr;
  ASSERT_CU(cuGraphCreate(&other, 0));
  EXPECT_EQ(cuGraphAddEmptyNode(&node, other, &good, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphApi, KernelParametersAreTheNodesOwn) {
  Word* word = words(2);
  const CUgraphNode node = add_store(graph_, {}, word, 5);
  CUDA_KERNEL_NODE_PARAMS shown{};
  ASSERT_CU(cuGraphKernelNodeGetParams(node, &shown));
  EXPECT_EQ(shown.func, function("store"));
  EXPECT_EQ(shown.extra, nullptr);
  ASSERT_NE(shown.kernelParams, nullptr);
  EXPECT_EQ(*static_cast<Word**>(shown.kernelParams[0]), word);
  EXPECT_EQ(*static_cast<unsigned*>(shown.kernelParams[1]), 5U);

  unsigned value = 6;
  void* values[] = {shown.kernelParams[0], &value};
  CUDA_KERNEL_NODE_PARAMS changed = shown;
  changed.kernelParams = values;
  EXPECT_CU(cuGraphKernelNodeSetParams(node, &changed));
  run(graph_);
  EXPECT_EQ(word[0], 6U);

  struct {
    Word* word;
    unsigned value;
  } buffer{word + 1, 7};
  std::size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  changed.kernelParams = nullptr;
  changed.extra = extra;
  EXPECT_CU(cuGraphKernelNodeSetParams(node, &changed));
  ASSERT_CU(cuGraphKernelNodeGetParams(node, &shown));
  EXPECT_EQ(shown.kernelParams, nullptr);
  ASSERT_NE(shown.extra, nullptr);
  EXPECT_CU(cuGraphKernelNodeSetParams(node, &shown));
  run(graph_);
  EXPECT_EQ(word[1], 7U);
}

TEST_F(GraphApi, AttributesOfKernels) {
  Word* word = words(1);
  const CUgraphNode a = add_store(graph_, {}, word, 1);
  const CUgraphNode b = add_store(graph_, {a}, word, 2);
  CUkernelNodeAttrValue value{};
  value.priority = -3;
  EXPECT_CU(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  EXPECT_CU(cuGraphKernelNodeCopyAttributes(b, a));
  value = {};
  EXPECT_CU(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  EXPECT_EQ(value.priority, -3);
  value = {};
  value.cooperative = 1;
  EXPECT_EQ(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(GraphApi, EdgesCanBeAskedForAndChanged) {
  Word* word = words(1);
  const CUgraphNode a = add_store(graph_, {}, word, 1);
  const CUgraphNode b = add_store(graph_, {a}, word, 2);
  const CUgraphNode c = add_store(graph_, {}, word, 3);
  EXPECT_CU(cuGraphAddDependencies(graph_, &b, &c, nullptr, 1));
  EXPECT_EQ(cuGraphAddDependencies(graph_, &b, &c, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  CUgraphNode from[3];
  CUgraphNode to[3];
  std::size_t count = 3;
  EXPECT_CU(cuGraphGetEdges(graph_, from, to, nullptr, &count));
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(from[0], a);
  EXPECT_EQ(to[0], b);
  EXPECT_EQ(from[1], b);
  EXPECT_EQ(to[1], c);
  EXPECT_EQ(from[2], nullptr);
  CUgraphNode found = nullptr;
  count = 1;
  EXPECT_CU(cuGraphGetRootNodes(graph_, &found, &count));
  EXPECT_EQ(found, a);
  EXPECT_CU(cuGraphNodeGetDependencies(c, &found, nullptr, &count));
  EXPECT_EQ(found, b);
  EXPECT_CU(cuGraphNodeGetDependentNodes(a, &found, nullptr, &count));
  EXPECT_EQ(found, b);

  EXPECT_CU(cuGraphAddDependencies(graph_, &c, &a, nullptr, 1));
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithParams(&exec, graph_, &params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  EXPECT_CU(cuGraphRemoveDependencies(graph_, &c, &a, nullptr, 1));
  EXPECT_CU(cuGraphDestroyNode(b));
  EXPECT_EQ(cuGraphDestroyNode(b), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(nodes_of(graph_), (std::vector<CUgraphNode>{a, c}));
  count = 3;
  EXPECT_CU(cuGraphGetEdges(graph_, from, to, nullptr, &count));
  EXPECT_EQ(count, 0U);
  run(graph_);
}

TEST_F(GraphApi, ClonesAreIndependent) {
  Word* word = words(3);
  const CUgraphNode a = add_store(graph_, {}, word, 1);
  const CUgraphNode b = add_store(graph_, {a}, word + 1, 1);
  CUgraph clone = nullptr;
  ASSERT_CU(cuGraphClone(&clone, graph_));
  const CUgraphNode late = add_store(graph_, {b}, word + 2, 1);
  CUgraphNode copy = nullptr;
  EXPECT_CU(cuGraphNodeFindInClone(&copy, b, clone));
  EXPECT_EQ(copy, nodes_of(clone)[1]);
  CUgraphNode none = nullptr;
  EXPECT_EQ(cuGraphNodeFindInClone(&none, late, clone), CUDA_ERROR_INVALID_VALUE);
  CUDA_KERNEL_NODE_PARAMS params{};
  ASSERT_CU(cuGraphKernelNodeGetParams(copy, &params));
  unsigned value = 9;
  void* values[] = {params.kernelParams[0], &value};
  params.kernelParams = values;
  EXPECT_CU(cuGraphKernelNodeSetParams(copy, &params));
  EXPECT_CU(cuGraphDestroy(graph_));
  run(clone);
  EXPECT_EQ(word[0], 1U);
  EXPECT_EQ(word[1], 9U);
  EXPECT_EQ(word[2], 0U);
  EXPECT_EQ(cuGraphNodeGetType(copy, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  EXPECT_EQ(cuGraphNodeGetType(b, &type), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphApi, ChildGraphsRunInTheirPlace) {
  Word* word = words(8);
  CUgraph child = nullptr;
  ASSERT_CU(cuGraphCreate(&child, 0));
  const CUgraphNode inner = add_mark(child, {}, word, word + 2);
  add_mark(child, {inner}, word, word + 3);
  const CUgraphNode first = add_mark(graph_, {}, word, word + 1);
  CUgraphNode node = nullptr;
  ASSERT_CU(cuGraphAddChildGraphNode(&node, graph_, &first, 1, child));
  add_mark(graph_, {node}, word, word + 4);
  CUgraph empty = nullptr;
  ASSERT_CU(cuGraphCreate(&empty, 0));
  CUgraphNode empty_node = nullptr;
  ASSERT_CU(cuGraphAddChildGraphNode(&empty_node, graph_, &node, 1, empty));
  add_mark(graph_, {empty_node}, word, word + 5);
  EXPECT_CU(cuGraphDestroy(child));
  run(graph_);
  EXPECT_EQ(word[1], 0U);
  EXPECT_EQ(word[2], 1U);
  EXPECT_EQ(word[3], 2U);
  EXPECT_EQ(word[4] + word[5], 7U);

  CUgraph embedded = nullptr;
  ASSERT_CU(cuGraphChildGraphNodeGetGraph(node, &embedded));
  EXPECT_EQ(nodes_of(embedded).size(), 2U);
  EXPECT_EQ(cuGraphDestroy(embedded), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, graph_), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphApi, NodesNeedNoContextOfTheirOwn) {
  int calls = 0;
  const CUDA_HOST_NODE_PARAMS host{[](void* data) { ++*static_cast<int*>(data); }, &calls};
  CUgraphNode node = nullptr;
  EXPECT_CU(cuCtxSetCurrent(nullptr));
  EXPECT_CU(cuGraphAddHostNode(&node, graph_, nullptr, 0, &host));
  EXPECT_CU(cuCtxSetCurrent(context_));
  run(graph_);
  EXPECT_EQ(calls, 1);
}

TEST_F(GraphApi, OneFunctionAddsEveryKindOfNode) {
  Word* word = words(4);
  Word* flag = word + 1;
  unsigned value = 4;
  void* values[] = {&word, &value};
  const CUDA_KERNEL_NODE_PARAMS store = kernel("store", values);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel.func = store.func;
  params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ = 1;
  params.kernel.blockDimX = params.kernel.blockDimY = params.kernel.blockDimZ = 1;
  params.kernel.kernelParams = values;
  CUgraphNode node = nullptr;
  ASSERT_CU(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params));
  CUstreamBatchMemOpParams step{};
  step.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  step.writeValue.address = reinterpret_cast<CUdeviceptr>(flag);
  step.writeValue.value = 8;
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  params.memOp.count = 1;
  params.memOp.paramArray = &step;
  CUgraphNode batch = nullptr;
  ASSERT_CU(cuGraphAddNode(&batch, graph_, &node, nullptr, 1, &params));
  CUgraphEdgeData programmatic{};
  programmatic.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  EXPECT_EQ(cuGraphAddNode(&batch, graph_, &node, &programmatic, 1, &params), CUDA_ERROR_NOT_SUPPORTED);
  params = {};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  EXPECT_EQ(cuGraphAddNode(&batch, graph_, nullptr, nullptr, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
  run(graph_);
  EXPECT_EQ(word[0], 4U);
  EXPECT_EQ(*flag, 8U);
}

}  // namespace
}  // namespace gpuctl::softgpu
