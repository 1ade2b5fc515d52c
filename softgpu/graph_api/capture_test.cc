#include <array>
#include <thread>

#include "softgpu/graph_api/capture_fixture.h"

namespace gpuctl::softgpu {
namespace {

TEST_F(CaptureApi, WorkBecomesAChainAndRunsOnlyWhenLaunched) {
  Word* word = words(4);
  const auto address = reinterpret_cast<CUdeviceptr>(word);
  ASSERT_CU(begin());
  EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_CU(cuMemsetD32Async(address, 5, 1, stream_));
  EXPECT_CU(cuMemcpyDtoDAsync(address + 4, address, 4, stream_));
  EXPECT_CU(launch_store(word + 2, 7, stream_));
  EXPECT_CU(cuLaunchHostFunc(
      stream_, [](void* data) { static_cast<Word*>(data)->store(9); }, word + 3));
  const CUgraph graph = end();
  EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_CU(cuStreamSynchronize(stream_));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(word[i], 0U);

  std::array<CUgraphNode, 4> nodes{};
  std::size_t count = nodes.size();
  ASSERT_CU(cuGraphGetNodes(graph, nodes.data(), &count));
  ASSERT_EQ(count, 4U);
  const CUgraphNodeType expected[] = {CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_KERNEL,
                                      CU_GRAPH_NODE_TYPE_HOST};
  for (std::size_t i = 0; i < 4; ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    EXPECT_CU(cuGraphNodeGetType(nodes[i], &type));
    EXPECT_EQ(type, expected[i]);
  }
  EXPECT_EQ(edge_count(graph), 3U);

  run(graph);
  EXPECT_EQ(word[0], 5U);
  EXPECT_EQ(word[1], 5U);
  EXPECT_EQ(word[2], 7U);
  EXPECT_EQ(word[3], 9U);
}

TEST_F(CaptureApi, ParametersAreTakenWhenCaptured) {
  Word* word = words(1);
  unsigned value = 3;
  void* params[] = {&word, &value};
  ASSERT_CU(begin());
  EXPECT_CU(cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, stream_, params, nullptr));
  value = 4;
  const CUgraph graph = end();
  run(graph);
  EXPECT_EQ(word[0], 3U);
}

TEST_F(CaptureApi, EventsForkAndJoin) {
  Word* word = words(4);
  ASSERT_CU(begin());
  EXPECT_CU(launch_mark(word, word + 1, stream_));
  EXPECT_CU(cuEventRecord(event_, stream_));
  EXPECT_CU(cuStreamWaitEvent(other_, event_, 0));
  EXPECT_EQ(status(other_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_CU(launch_wait(word + 3, 1, 32, other_));  // ends only if the other branch runs at the same time
  EXPECT_CU(launch_store(word + 3, 1, stream_));
  EXPECT_CU(cuEventRecord(joined_, other_));
  EXPECT_CU(cuStreamWaitEvent(stream_, joined_, 0));
  EXPECT_CU(launch_mark(word, word + 2, stream_));
  const CUgraph graph = end();
  EXPECT_EQ(status(other_), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(node_count(graph), 4U);
  EXPECT_EQ(edge_count(graph), 4U);
  run(graph);
  EXPECT_EQ(word[0], 2U);
  EXPECT_EQ(word[1], 0U);
  EXPECT_EQ(word[2], 1U);
}

TEST_F(CaptureApi, ABranchThatIsNotJoinedIsAnError) {
  Word* word = words(1);
  ASSERT_CU(begin());
  EXPECT_CU(cuEventRecord(event_, stream_));
  EXPECT_CU(cuStreamWaitEvent(other_, event_, 0));
  EXPECT_CU(launch_store(word, 1, other_));
  CUgraph graph = reinterpret_cast<CUgraph>(1);
  EXPECT_EQ(cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_CU(begin());
  EXPECT_CU(cuEventRecord(event_, stream_));
  EXPECT_CU(cuStreamWaitEvent(other_, event_, 0));
  EXPECT_CU(launch_store(word, 1, other_));
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(status(other_), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(CaptureApi, WaitingForACapturingStreamBreaksTheCapture) {
  ASSERT_CU(begin());
  EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_broken();
  ASSERT_CU(begin());
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_broken();
  ASSERT_CU(begin());
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_broken();
}

TEST_F(CaptureApi, UnsafeCallsDependOnTheModes) {
  CUdeviceptr memory = 0;
  ASSERT_CU(begin());
  EXPECT_EQ(cuMemAlloc(&memory, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_broken();

  ASSERT_CU(begin());
  std::thread([&] {
    EXPECT_CU(cuCtxSetCurrent(context_));
    EXPECT_EQ(cuMemAlloc(&memory, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }).join();
  expect_broken();

  ASSERT_CU(begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread([&] {
    EXPECT_CU(cuCtxSetCurrent(context_));
    EXPECT_CU(cuMemAlloc(&memory, 4));
  }).join();
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_broken();

  ASSERT_CU(begin());
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_CU(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_CU(cuMemAlloc(&memory, 4));
  EXPECT_CU(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_NE(end(), nullptr);

  ASSERT_CU(begin(CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(cuMemAlloc(&memory, 4));
  CUgraph graph = nullptr;
  std::thread([&] {
    EXPECT_CU(cuCtxSetCurrent(context_));
    EXPECT_CU(cuStreamEndCapture(stream_, &graph));
  }).join();
  EXPECT_NE(graph, nullptr);
}

TEST_F(CaptureApi, EndsInTheThreadWhereItBegan) {
  ASSERT_CU(begin());
  std::thread([&] {
    EXPECT_CU(cuCtxSetCurrent(context_));
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  EXPECT_EQ(begin(), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_NE(end(), nullptr);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(CaptureApi, TheLegacyStreamIsUnusableBesideABlockingCapture) {
  Word* word = words(1);
  EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ASSERT_CU(begin());
  EXPECT_CU(launch_store(word, 1, nullptr));  // allowed with a non-blocking stream
  EXPECT_NE(end(), nullptr);
  ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_DEFAULT));
  ASSERT_CU(begin());
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  EXPECT_EQ(cuStreamIsCapturing(nullptr, &state), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(launch_store(word, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  expect_broken();
}

TEST_F(CaptureApi, ThePerThreadStreamCaptures) {
  Word* word = words(1);
  ASSERT_CU(cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(launch_store(word, 8, CU_STREAM_PER_THREAD));
  CUgraph graph = nullptr;
  ASSERT_CU(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
  run(graph);
  EXPECT_EQ(word[0], 8U);
}

TEST_F(CaptureApi, EventsDoNotCrossTheBorder) {
  Word* word = words(1);
  EXPECT_CU(cuEventRecord(event_, other_));
  ASSERT_CU(begin());
  EXPECT_EQ(cuStreamWaitEvent(stream_, event_, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  expect_broken();
  ASSERT_CU(begin());
  EXPECT_CU(cuEventRecord(event_, stream_));
  EXPECT_EQ(cuEventQuery(event_), CUDA_ERROR_CAPTURED_EVENT);
  expect_broken();
  EXPECT_EQ(cuEventSynchronize(event_), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(cuStreamWaitEvent(other_, event_, 0), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_CU(cuEventRecord(event_, other_));  // an ordinary event again
  EXPECT_CU(cuEventSynchronize(event_));
  ASSERT_CU(begin());
  ASSERT_CU(cuStreamBeginCapture(other_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(cuEventRecord(event_, other_));
  EXPECT_EQ(cuStreamWaitEvent(stream_, event_, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  expect_broken();
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(other_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_CU(launch_store(word, 1, other_));
}

TEST_F(CaptureApi, ExternalEventsAreNodes) {
  Word* word = words(2);
  ASSERT_CU(begin());
  EXPECT_CU(cuStreamWaitEvent(stream_, event_, CU_EVENT_WAIT_EXTERNAL));
  EXPECT_CU(launch_store(word, 1, stream_));
  EXPECT_CU(cuEventRecordWithFlags(joined_, stream_, CU_EVENT_RECORD_EXTERNAL));
  const CUgraph graph = end();
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_CU(launch_wait(word + 1, 1, 32, other_));
  EXPECT_CU(cuEventRecord(event_, other_));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(cuEventQuery(joined_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(word[0], 0U);
  word[1] = 1;
  EXPECT_CU(cuEventSynchronize(joined_));
  EXPECT_EQ(word[0], 1U);
}

TEST_F(CaptureApi, InfoShowsGraphAndDependenciesWhichCanBeChanged) {
  Word* word = words(2);
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* last = nullptr;
  std::size_t count = 7;
  ASSERT_CU(begin());
  EXPECT_CU(launch_store(word, 1, stream_));
  EXPECT_CU(cuStreamGetCaptureInfo(stream_, &state, &id, &graph, &last, nullptr, &count));
  EXPECT_EQ(state, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_NE(id, 0U);
  ASSERT_EQ(count, 1U);
  CUgraphNode empty = nullptr;
  EXPECT_CU(cuGraphAddEmptyNode(&empty, graph, last, 1));
  EXPECT_CU(cuStreamUpdateCaptureDependencies(stream_, &empty, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  EXPECT_CU(launch_store(word + 1, 2, stream_));
  EXPECT_EQ(end(), graph);
  EXPECT_EQ(node_count(graph), 3U);
  EXPECT_EQ(edge_count(graph), 2U);
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(stream_, &empty, nullptr, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
  run(graph);
  EXPECT_EQ(word[1], 2U);
}

TEST_F(CaptureApi, GoesIntoAGraphOfTheProgram) {
  Word* word = words(2);
  CUgraph graph = nullptr;
  ASSERT_CU(cuGraphCreate(&graph, 0));
  CUgraphNode first = nullptr;
  EXPECT_CU(cuGraphAddEmptyNode(&first, graph, nullptr, 0));
  ASSERT_CU(cuStreamBeginCaptureToGraph(stream_, graph, &first, nullptr, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(launch_store(word, 6, stream_));
  EXPECT_EQ(end(), graph);
  EXPECT_EQ(node_count(graph), 2U);
  EXPECT_EQ(edge_count(graph), 1U);
  run(graph);
  EXPECT_EQ(word[0], 6U);
}

TEST_F(CaptureApi, ALaunchedGraphBecomesAChild) {
  Word* word = words(2);
  ASSERT_CU(begin());
  EXPECT_CU(launch_mark(word, word + 1, stream_));
  const CUgraph inner = end();
  CUgraphExec exec = nullptr;
  ASSERT_CU(cuGraphInstantiate(&exec, inner, 0));
  ASSERT_CU(begin());
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  EXPECT_CU(cuGraphLaunch(exec, stream_));
  const CUgraph graph = end();
  EXPECT_EQ(node_count(graph), 2U);
  run(graph);
  EXPECT_EQ(word[0], 2U);
}

TEST_F(CaptureApi, EndsWithItsStreamOrContext) {
  Word* word = words(1);
  ASSERT_CU(begin());
  EXPECT_CU(cuStreamDestroy(stream_));
  CUdeviceptr memory = 0;
  EXPECT_CU(cuMemAlloc(&memory, 4));
  CUcontext second = nullptr;
  ASSERT_CU(cuCtxCreate(&second, nullptr, 0, 0));
  ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(begin());
  ASSERT_CU(cuCtxDestroy(second));
  EXPECT_CU(cuCtxSetCurrent(context_));
  EXPECT_CU(cuMemAlloc(&memory, 4));
  EXPECT_CU(launch_store(word, 1, other_));
}

}  // namespace
}  // namespace gpuctl::softgpu
