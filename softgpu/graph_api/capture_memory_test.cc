// Memory that is allocated and freed in a capture.
#include "softgpu/graph_api/capture_fixture.h"

namespace gpuctl::softgpu {
namespace {

TEST_F(CaptureApi, MemoryOfTheGraphIsAllocatedByEachLaunch) {
  Word* word = words(1);
  CUdeviceptr memory = 0;
  ASSERT_CU(begin());
  EXPECT_CU(cuMemAllocAsync(&memory, 64, stream_));
  EXPECT_CU(cuMemsetD32Async(memory, 11, 16, stream_));
  EXPECT_CU(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(word), memory + 60, 4, stream_));
  EXPECT_CU(cuMemFreeAsync(memory, stream_));
  const CUgraph graph = end();
  EXPECT_EQ(node_count(graph), 4U);
  CUgraph clone = nullptr;
  EXPECT_EQ(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
  run(graph);
  EXPECT_EQ(word[0], 11U);
  CUgraphExec exec = nullptr;
  CUgraphExec second = nullptr;
  ASSERT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_INVALID_VALUE);
  word[0] = 0;
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuStreamSynchronize(stream_));
  EXPECT_EQ(word[0], 11U);
}

TEST_F(CaptureApi, MemoryThatIsNotFreedCannotBeAllocatedAgain) {
  CUdeviceptr memory = 0;
  ASSERT_CU(begin());
  EXPECT_CU(cuMemAllocAsync(&memory, 64, stream_));
  const CUgraph graph = end();
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);  // nothing has allocated it yet
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuGraphLaunch(exec, stream_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFreeAsync(memory, stream_));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuMemFree(memory));
  EXPECT_CU(cuGraphExecDestroy(exec));
  ASSERT_CU(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuStreamSynchronize(stream_));
}

TEST_F(CaptureApi, MemoryOfGraphsStaysReservedUntilItIsTrimmed) {
  const auto amount = [](CUgraphMem_attribute attribute) {
    cuuint64_t bytes = 0;
    EXPECT_CU(cuDeviceGetGraphMemAttribute(0, attribute, &bytes));
    return bytes;
  };
  constexpr std::size_t kBytes = 1 << 20;
  ASSERT_CU(cuDeviceGraphMemTrim(0));
  const cuuint64_t before = amount(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);  // of other tests
  cuuint64_t none = 0;
  EXPECT_CU(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &none));
  CUdeviceptr memory = 0;
  ASSERT_CU(begin());
  EXPECT_CU(cuMemAllocAsync(&memory, kBytes, stream_));
  const CUgraph graph = end();
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(amount(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), before);
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(amount(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before + kBytes);
  EXPECT_CU(cuMemFree(memory));
  EXPECT_EQ(amount(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), before);
  EXPECT_EQ(amount(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), before + kBytes);
  EXPECT_CU(cuDeviceGraphMemTrim(0));
  EXPECT_EQ(amount(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), before);
  EXPECT_EQ(amount(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), before + kBytes);
}

}  // namespace
}  // namespace gpuctl::softgpu
