// What CUDA graphs have to do, case by case: graphs [CASE]. A line for each, "CASE: right" or "CASE: wrong", what a
// call answered unexpectedly on stderr; exit status 0, or 3 when a case was wrong. Knows nothing of slices, so it also
// shows whether a driver, NVIDIA's or the software GPU, is one to expect these things of.
#include <cstring>
#include <functional>
#include <vector>

#include "driver.h"
#include "graph_kernels.h"

namespace {

constexpr unsigned kThreads = 64;
constexpr unsigned kBlocks = 40;
constexpr unsigned kWords = kThreads * kBlocks;
constexpr unsigned kBytes = kWords * sizeof(unsigned);
constexpr unsigned kIterations = 8;

CUfunction step_kernel, combine_kernel;
CUcontext context;
CUstream stream, side;
CUevent fork_event, join_event;
CUdeviceptr a, b;
unsigned* host;  // page-locked, kWords
bool as_expected;

using Words = std::vector<unsigned>;

/// Notes what a call answered where that is not what it should.
void expect(const char* what, int got, int wanted) {
  if (got == wanted) return;
  std::fprintf(stderr, "%s: %d instead of %d\n", what, got, wanted);
  as_expected = false;
}
#define EXPECT(call, wanted) expect(#call, call, wanted)

Words counted(unsigned from) {
  Words words(kWords);
  for (unsigned i = 0; i < kWords; ++i) words[i] = from + i;
  return words;
}

void step(Words& words, unsigned add) {
  for (unsigned& word : words) word = scrambled(word + add, kIterations);
}

void set_host(const Words& words) {
  std::memcpy(host, words.data(), kBytes);
}

/// Waits for everything; the page-locked memory must hold these words then.
void expect_host(const Words& expected) {
  DRIVER_CHECK(cuCtxSynchronize());
  expect("words alike", std::memcmp(host, expected.data(), kBytes) == 0, 1);
}

void launch_step(CUdeviceptr data, unsigned add, CUstream on) {
  unsigned iterations = kIterations;
  void* values[] = {&data, &add, &iterations};
  DRIVER_CHECK(cuLaunchKernel(step_kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, on, values, nullptr));
}

CUgraph capture(const std::function<void()>& work) {
  CUgraph graph = nullptr;
  DRIVER_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  work();
  DRIVER_CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  DRIVER_CHECK(cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

/// Calls `use` with the parameters of a node that steps `data`.
void with_step(CUdeviceptr data, unsigned add, const std::function<void(const CUDA_KERNEL_NODE_PARAMS&)>& use) {
  unsigned iterations = kIterations;
  void* values[] = {&data, &add, &iterations};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = step_kernel;
  params.gridDimX = kBlocks;
  params.blockDimX = kThreads;
  params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = values;
  use(params);
}

CUgraphNode add_step(CUgraph graph, const std::vector<CUgraphNode>& after, CUdeviceptr data, unsigned add) {
  CUgraphNode node = nullptr;
  with_step(data, add, [&](const CUDA_KERNEL_NODE_PARAMS& params) {
    DRIVER_CHECK(cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
  });
  return node;
}

/// Two steps of `a`, and the page-locked memory is its place before and after.
CUgraph capture_chain(unsigned first, unsigned second) {
  return capture([&] {
    DRIVER_CHECK(cuMemcpyHtoDAsync(a, host, kBytes, stream));
    launch_step(a, first, stream);
    launch_step(a, second, stream);
    DRIVER_CHECK(cuMemcpyDtoHAsync(host, a, kBytes, stream));
  });
}

void chain() {
  Words expected = counted(1);
  set_host(expected);
  const CUgraph graph = capture_chain(3, 5);
  expect_host(expected);  // nothing has run
  std::size_t nodes = 0;
  EXPECT(cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  expect("nodes of the chain", static_cast<int>(nodes), 4);
  DRIVER_CHECK(cuGraphLaunch(instantiate(graph), stream));
  step(expected, 3);
  step(expected, 5);
  expect_host(expected);
}

/// Each launch goes on with what the one before left.
void replay() {
  Words expected = counted(2);
  set_host(expected);
  const CUgraphExec exec = instantiate(capture_chain(7, 11));
  for (unsigned i = 0; i < 100; ++i) {
    DRIVER_CHECK(cuGraphLaunch(exec, i % 3 == 0 ? side : stream));  // in whichever stream
    step(expected, 7);
    step(expected, 11);
  }
  expect_host(expected);
}

void fork_join() {
  set_host(counted(4));
  const CUgraph graph = capture([] {
    DRIVER_CHECK(cuMemcpyHtoDAsync(a, host, kBytes, stream));
    DRIVER_CHECK(cuMemcpyDtoDAsync(b, a, kBytes, stream));
    DRIVER_CHECK(cuEventRecord(fork_event, stream));
    DRIVER_CHECK(cuStreamWaitEvent(side, fork_event, 0));
    launch_step(a, 1, stream);
    launch_step(b, 2, side);
    launch_step(b, 3, side);
    DRIVER_CHECK(cuEventRecord(join_event, side));
    DRIVER_CHECK(cuStreamWaitEvent(stream, join_event, 0));
    void* values[] = {&a, &b};
    DRIVER_CHECK(cuLaunchKernel(combine_kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, values, nullptr));
    DRIVER_CHECK(cuMemcpyDtoHAsync(host, a, kBytes, stream));
  });
  DRIVER_CHECK(cuGraphLaunch(instantiate(graph), stream));
  Words left = counted(4);
  Words right = counted(4);
  step(left, 1);
  step(right, 2);
  step(right, 3);
  for (unsigned i = 0; i < kWords; ++i) left[i] = left[i] * 31 + right[i];
  expect_host(left);
}

/// A memset, a step, a copy of every second row, and a host function that changes the first word.
void nodes() {
  set_host(Words(kWords, 0));
  CUgraph graph = nullptr;
  CUgraphNode set_node = nullptr, copy_node = nullptr, host_node = nullptr;
  DRIVER_CHECK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = a;
  set.value = 9;
  set.elementSize = sizeof(unsigned);
  set.width = kWords;
  set.height = 1;
  DRIVER_CHECK(cuGraphAddMemsetNode(&set_node, graph, nullptr, 0, &set, context));
  const CUgraphNode step_node = add_step(graph, {set_node}, a, 6);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.srcPitch = copy.dstPitch = 2 * kThreads * sizeof(unsigned);
  copy.WidthInBytes = kThreads * sizeof(unsigned);
  copy.Height = kBlocks / 2;
  copy.Depth = 1;
  DRIVER_CHECK(cuGraphAddMemcpyNode(&copy_node, graph, &step_node, 1, &copy, context));
  CUDA_HOST_NODE_PARAMS call{[](void* first) { ++*static_cast<unsigned*>(first); }, host};
  DRIVER_CHECK(cuGraphAddHostNode(&host_node, graph, &copy_node, 1, &call));
  DRIVER_CHECK(cuGraphLaunch(instantiate(graph), stream));
  Words expected(kWords, 9);
  step(expected, 6);
  for (unsigned i = 0; i < kWords; ++i) {
    if (i / kThreads % 2 == 1) expected[i] = 0;
  }
  ++expected[0];
  expect_host(expected);
}

void child() {
  CUgraph outer = nullptr;
  CUgraphNode node = nullptr;
  set_host(counted(8));
  const CUgraph inner = capture_chain(2, 4);
  DRIVER_CHECK(cuGraphCreate(&outer, 0));
  DRIVER_CHECK(cuGraphAddChildGraphNode(&node, outer, nullptr, 0, inner));
  DRIVER_CHECK(cuGraphDestroy(inner));
  const CUgraphNode more = add_step(outer, {node}, a, 16);
  CUgraphNode last = nullptr;
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.WidthInBytes = kBytes;
  copy.Height = copy.Depth = 1;
  DRIVER_CHECK(cuGraphAddMemcpyNode(&last, outer, &more, 1, &copy, context));
  CUgraph clone = nullptr;
  DRIVER_CHECK(cuGraphClone(&clone, outer));
  DRIVER_CHECK(cuGraphDestroy(outer));
  DRIVER_CHECK(cuGraphLaunch(instantiate(clone), stream));
  Words expected = counted(8);
  for (const unsigned add : {2u, 4u, 16u}) step(expected, add);
  expect_host(expected);
}

/// Parameters of a node of an executable graph change, then all of them, then one node is switched off.
void update() {
  CUgraph graph = capture_chain(1, 2);
  const CUgraphExec exec = instantiate(graph);
  std::vector<CUgraphNode> all(4);
  std::size_t count = all.size();
  DRIVER_CHECK(cuGraphGetNodes(graph, all.data(), &count));
  CUgraphNode second = all[2];
  with_step(a, 77, [&](const CUDA_KERNEL_NODE_PARAMS& params) {
    DRIVER_CHECK(cuGraphExecKernelNodeSetParams(exec, second, &params));
  });
  Words expected = counted(3);
  set_host(expected);
  DRIVER_CHECK(cuGraphLaunch(exec, stream));
  step(expected, 1);
  step(expected, 77);
  expect_host(expected);

  CUgraphExecUpdateResultInfo info{};
  EXPECT(cuGraphExecUpdate(exec, capture_chain(13, 14), &info), CUDA_SUCCESS);
  EXPECT(cuGraphNodeSetEnabled(exec, second, 0), CUDA_SUCCESS);
  DRIVER_CHECK(cuGraphLaunch(exec, stream));
  step(expected, 13);
  expect_host(expected);
  EXPECT(cuGraphExecUpdate(exec, capture([] { launch_step(a, 1, stream); }), &info),
         CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  EXPECT(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

void two_streams() {
  DRIVER_CHECK(cuMemsetD32(a, 1, kWords));
  DRIVER_CHECK(cuMemsetD32(b, 2, kWords));
  DRIVER_CHECK(cuCtxSynchronize());  // these streams do not wait for the one of the memsets
  const CUgraphExec one = instantiate(capture([] { launch_step(a, 5, stream); }));
  const CUgraphExec two = instantiate(capture([] { launch_step(b, 6, stream); }));
  Words expected_a(kWords, 1);
  Words expected_b(kWords, 2);
  for (unsigned i = 0; i < 20; ++i) {
    DRIVER_CHECK(cuGraphLaunch(one, stream));
    DRIVER_CHECK(cuGraphLaunch(two, side));
    step(expected_a, 5);
    step(expected_b, 6);
  }
  DRIVER_CHECK(cuMemcpyDtoHAsync(host, a, kBytes, stream));
  expect_host(expected_a);
  DRIVER_CHECK(cuMemcpyDtoHAsync(host, b, kBytes, side));
  expect_host(expected_b);
}

/// Captures, does what must not be done, and expects the answer and that the capture is broken.
void expect_broken(const char* what, const std::function<CUresult()>& forbidden, CUresult answer) {
  DRIVER_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  expect(what, forbidden(), answer);
  CUgraph graph = nullptr;
  expect(what, cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  expect(what, graph == nullptr, 1);
}

void refusals() {
  CUgraph graph = nullptr;
  expect_broken(
      "synchronize", [] { return cuStreamSynchronize(stream); }, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_broken(
      "query", [] { return cuStreamQuery(stream); }, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_broken(
      "context", [] { return cuCtxSynchronize(); }, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  expect_broken(
      "allocate",
      [] {
        CUdeviceptr p;
        return cuMemAlloc(&p, 64);
      },
      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  DRIVER_CHECK(cuEventRecord(fork_event, side));
  expect_broken(
      "isolation", [] { return cuStreamWaitEvent(stream, fork_event, 0); }, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

  DRIVER_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
  DRIVER_CHECK(cuEventRecord(fork_event, stream));
  DRIVER_CHECK(cuStreamWaitEvent(side, fork_event, 0));
  launch_step(a, 1, side);
  EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);

  const CUgraph original = capture_chain(1, 2);
  CUgraph clone = nullptr;
  DRIVER_CHECK(cuGraphClone(&clone, original));
  CUgraphNode node = nullptr, copy = nullptr;
  std::size_t count = 1;
  DRIVER_CHECK(cuGraphGetRootNodes(original, &node, &count));
  EXPECT(cuGraphNodeFindInClone(&copy, node, clone), CUDA_SUCCESS);
  EXPECT(cuGraphNodeFindInClone(&copy, node, original), CUDA_ERROR_INVALID_VALUE);
}

const struct {
  const char* name;
  void (*run)();
} kCases[] = {{"chain", chain}, {"replay", replay}, {"fork_join", fork_join},     {"nodes", nodes},
              {"child", child}, {"update", update}, {"two_streams", two_streams}, {"refusals", refusals}};

}  // namespace

int main(int argc, char** argv) {
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  DRIVER_CHECK(cuCtxGetCurrent(&context));
  step_kernel = load_kernel(kGraphPtx, "step");
  combine_kernel = load_kernel(kGraphPtx, "combine");
  for (CUstream* one : {&stream, &side}) DRIVER_CHECK(cuStreamCreate(one, CU_STREAM_NON_BLOCKING));
  for (CUevent* one : {&fork_event, &join_event}) DRIVER_CHECK(cuEventCreate(one, CU_EVENT_DISABLE_TIMING));
  for (CUdeviceptr* one : {&a, &b}) DRIVER_CHECK(cuMemAlloc(one, kBytes));
  DRIVER_CHECK(cuMemAllocHost(reinterpret_cast<void**>(&host), kBytes));
  bool all = true;
  for (const auto& one : kCases) {
    if (argc > 1 && std::strcmp(argv[1], one.name) != 0) continue;
    as_expected = true;
    one.run();
    std::printf("%s: %s\n", one.name, as_expected ? "right" : "wrong");
    all &= as_expected;
  }
  return all ? 0 : 3;
}
