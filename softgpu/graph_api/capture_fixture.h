// Streams and events for tests of captures.
#pragma once

#include "softgpu/api/fixture.h"

namespace gpuctl::softgpu {

class CaptureApi : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    ASSERT_CU(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    ASSERT_CU(cuEventCreate(&joined_, CU_EVENT_DISABLE_TIMING));
  }

  CUresult begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    return cuStreamBeginCapture(stream_, mode);
  }

  CUresult launch_store(Word* word, unsigned value, CUstream stream) {
    void* params[] = {&word, &value};
    return cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
  }

  CUstreamCaptureStatus status(CUstream stream) {
    CUstreamCaptureStatus result = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_CU(cuStreamIsCapturing(stream, &result));
    return result;
  }

  /// Ends a capture that must be a valid one.
  CUgraph end() {
    CUgraph graph = nullptr;
    EXPECT_CU(cuStreamEndCapture(stream_, &graph));
    return graph;
  }

  /// Expects that the capture was broken: its end reports that and gives no graph, and the stream works again.
  void expect_broken() {
    EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    Word* word = nullptr;
    EXPECT_EQ(launch_store(word, 0, stream_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CUgraph graph = reinterpret_cast<CUgraph>(1);
    EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(status(stream_), CU_STREAM_CAPTURE_STATUS_NONE);
    EXPECT_CU(cuStreamSynchronize(stream_));
  }

  void run(CUgraph graph) {
    CUgraphExec exec = nullptr;
    ASSERT_CU(cuGraphInstantiate(&exec, graph, 0));
    EXPECT_CU(cuGraphLaunch(exec, stream_));
    EXPECT_CU(cuStreamSynchronize(stream_));
    EXPECT_CU(cuGraphExecDestroy(exec));
  }

  std::size_t node_count(CUgraph graph) {
    std::size_t count = 0;
    EXPECT_CU(cuGraphGetNodes(graph, nullptr, &count));
    return count;
  }

  std::size_t edge_count(CUgraph graph) {
    std::size_t count = 0;
    EXPECT_CU(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
    return count;
  }

  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
  CUevent event_ = nullptr;
  CUevent joined_ = nullptr;
};

}  // namespace gpuctl::softgpu
