// Tests the priority of a launch: that of its stream when it is issued, of its attribute, or of its node. The shared
// table shows it.
#include <chrono>
#include <thread>

#include "softgpu/graph_api/graph_fixture.h"
#include "softgpu/table/table.h"

namespace gpuctl::softgpu {
namespace {

class PriorityApi : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    ordinary_ = stream(0);
    urgent_ = stream(-5);
  }

  static CUstream stream(int priority) {
    CUstream result = nullptr;
    EXPECT_CU(cuStreamCreateWithPriority(&result, CU_STREAM_NON_BLOCKING, priority));
    return result;
  }

  static CUresult set_priority(CUstream stream, int priority) {
    CUstreamAttrValue value{};
    value.priority = priority;
    return cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
  }

  static int priority_of(CUstream stream) {
    CUstreamAttrValue value{};
    EXPECT_CU(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    int same = 1;
    EXPECT_CU(cuStreamGetPriority(stream, &same));
    EXPECT_EQ(same, value.priority);
    return value.priority;
  }

  /// The priority of the next kernel that runs. The kernel waits for `flag`; this function ends it.
  int next_priority(Word* flag) {
    const auto reader = TableReader::open(std::getenv("SOFTGPU_TABLE"));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (reader.has_value() && std::chrono::steady_clock::now() < end) {
      for (const KernelView& kernel : (*reader)->snapshot().kernels) {
        if (kernel.ticket <= seen_) continue;
        seen_ = kernel.ticket;
        *flag = 1;
        return -kernel.urgency;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "no kernel has come";
    *flag = 1;
    return 1;
  }

  /// The priority of the only kernel of a graph launched into that stream.
  int graph_priority(CUgraph graph, unsigned flags, CUstream stream, Word* flag) {
    *flag = 0;
    CUgraphExec exec = nullptr;
    EXPECT_CU(cuGraphInstantiate(&exec, graph, flags));
    EXPECT_CU(cuGraphLaunch(exec, stream));
    const int result = next_priority(flag);
    EXPECT_CU(cuStreamSynchronize(stream));
    EXPECT_CU(cuGraphExecDestroy(exec));
    return result;
  }

  CUstream ordinary_ = nullptr;
  CUstream urgent_ = nullptr;
  std::uint64_t seen_ = 0;  ///< the greatest ticket seen
};

TEST_F(PriorityApi, AStreamsNewPriorityIsThatOfLaterLaunches) {
  Word* flags = words(3);
  EXPECT_CU(launch_wait(flags, 1, 32, ordinary_));
  EXPECT_CU(launch_wait(flags + 1, 1, 32, ordinary_));
  EXPECT_CU(set_priority(ordinary_, -4));
  EXPECT_EQ(priority_of(ordinary_), -4);
  EXPECT_CU(launch_wait(flags + 2, 1, 32, ordinary_));
  EXPECT_EQ(next_priority(flags), 0);
  EXPECT_EQ(next_priority(flags + 1), 0);
  EXPECT_EQ(next_priority(flags + 2), -4);
}

TEST_F(PriorityApi, ALaunchsOwnAttributeGoesFirst) {
  Word* flag = words(1);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attribute.value.priority = -2;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = urgent_;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* params[] = {&flag};
  EXPECT_CU(cuLaunchKernelEx(&config, function("wait_for"), params, nullptr));
  EXPECT_EQ(next_priority(flag), -2);
}

TEST_F(PriorityApi, PrioritiesOfStreamsAreClamped) {
  EXPECT_CU(set_priority(ordinary_, -100));
  EXPECT_EQ(priority_of(ordinary_), -5);
  EXPECT_CU(set_priority(ordinary_, 100));
  EXPECT_EQ(priority_of(ordinary_), 0);
}

TEST_F(PriorityApi, DefaultStreamsTakePrioritiesToo) {
  EXPECT_CU(set_priority(nullptr, -1));
  EXPECT_EQ(priority_of(CU_STREAM_LEGACY), -1);
  EXPECT_CU(set_priority(CU_STREAM_LEGACY, -2));
  EXPECT_EQ(priority_of(nullptr), -2);
  EXPECT_CU(cuStreamCopyAttributes(nullptr, ordinary_));
  EXPECT_EQ(priority_of(nullptr), 0);
  EXPECT_CU(set_priority(CU_STREAM_PER_THREAD, -1));
  EXPECT_EQ(priority_of(CU_STREAM_PER_THREAD), -1);
}

TEST_F(PriorityApi, AttributesOfStreamsAreKeptAndCopied) {
  CUstreamAttrValue value{};
  EXPECT_CU(cuStreamGetAttribute(urgent_, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_AUTO);
  value.syncPolicy = CU_SYNC_POLICY_SPIN;
  EXPECT_CU(cuStreamSetAttribute(urgent_, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT_CU(cuStreamCopyAttributes(ordinary_, urgent_));
  value = {};
  EXPECT_CU(cuStreamGetAttribute(ordinary_, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_SPIN);
  EXPECT_EQ(priority_of(ordinary_), -5);
}

TEST_F(PriorityApi, WhatIsNoAttributeOfStreamsIsRefused) {
  CUstreamAttrValue value{};
  EXPECT_EQ(cuStreamSetAttribute(ordinary_, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamGetAttribute(ordinary_, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamSetAttribute(ordinary_, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamGetAttribute(ordinary_, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuStreamDestroy(urgent_));
  EXPECT_EQ(set_priority(urgent_, 0), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuStreamCopyAttributes(ordinary_, urgent_), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(PriorityApi, GraphsHaveThePriorityOfTheStreamTheyAreLaunchedInto) {
  Word* flag = words(1);
  CUgraph captured = nullptr;
  EXPECT_CU(cuStreamBeginCapture(urgent_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(launch_wait(flag, 1, 32, urgent_));
  EXPECT_CU(cuStreamEndCapture(urgent_, &captured));
  EXPECT_EQ(graph_priority(captured, 0, ordinary_, flag), 0);
  EXPECT_EQ(graph_priority(captured, 0, urgent_, flag), -5);
  EXPECT_CU(set_priority(ordinary_, -3));
  EXPECT_EQ(graph_priority(captured, 0, ordinary_, flag), -3);
  EXPECT_CU(cuGraphDestroy(captured));
}

TEST_F(PriorityApi, GraphsMayHaveThePrioritiesOfTheirNodes) {
  constexpr auto kByNode = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  Word* flag = words(1);
  CUgraph captured = nullptr;
  EXPECT_CU(cuStreamBeginCapture(ordinary_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(set_priority(ordinary_, -3));  // that of the stream when the launch is captured
  EXPECT_CU(launch_wait(flag, 1, 32, ordinary_));
  EXPECT_CU(cuStreamEndCapture(ordinary_, &captured));
  EXPECT_CU(set_priority(ordinary_, 0));
  EXPECT_EQ(graph_priority(captured, kByNode, ordinary_, flag), -3);
  EXPECT_EQ(graph_priority(captured, kByNode, urgent_, flag), -3);
  EXPECT_CU(cuGraphDestroy(captured));

  const CUgraphNode node = add_wait(graph_, {}, flag);
  EXPECT_EQ(graph_priority(graph_, kByNode, urgent_, flag), 0);  // the node has none
  CUkernelNodeAttrValue value{};
  value.priority = -1;
  EXPECT_CU(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  EXPECT_EQ(graph_priority(graph_, kByNode, urgent_, flag), -1);
}

}  // namespace
}  // namespace gpuctl::softgpu
