// Which priority has a launch of a graph: with CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY that of its nodes, without
// it that of the stream at the launch? Does it stay so if the stream's priority changes before the graph runs?
//
// A stream of the least priority fills the GPU with blocks of 100 us. In another stream, a kernel of the greatest one
// notes the time, and a graph of one short kernel of 264 blocks that is launched behind it notes when its last block
// ends. Prints how long that took. Build: nvcc -o graph_levels graph_levels.cu -lcuda
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"

__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__device__ void spin(unsigned long long ns) {
  const unsigned long long end = now() + ns;
  while (now() < end) {
  }
}

__global__ void fill(unsigned long long ns) {
  spin(ns);
}

__global__ void first(unsigned long long ns, unsigned long long* begin) {
  spin(ns);
  *begin = now();
}

__global__ void last(unsigned long long* end) {
  spin(2000);
  if (threadIdx.x == 0) atomicMax(end, now());
}

static void set_level(CUstream stream, int level) {
  CUstreamAttrValue value{};
  value.priority = level;
  CHECK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
}

int main() {
  CHECK(cudaFree(nullptr));
  unsigned long long* times;
  CHECK(cudaMallocManaged(&times, 2 * sizeof *times));
  CUstream busy, stream, capture;
  CHECK(cuStreamCreateWithPriority(&busy, CU_STREAM_NON_BLOCKING, 0));
  CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
  CHECK(cuStreamCreateWithPriority(&capture, CU_STREAM_NON_BLOCKING, 0));

  struct Case {
    const char* what;
    bool by_node;
    int captured, launched, after;  // levels: of the capture; of the stream at and after the launch
  };
  const Case cases[] = {
      {"no flag, captured at 0, launched at 0", false, 0, 0, 0},
      {"no flag, captured at -5, launched at 0", false, -5, 0, 0},
      {"no flag, captured at 0, launched at -5", false, 0, -5, -5},
      {"no flag, captured at 0, launched at -5, stream at 0 right after", false, 0, -5, 0},
      {"no flag, captured at 0, launched at 0, stream at -5 right after", false, 0, 0, -5},
      {"by node, captured at 0, launched at 0", true, 0, 0, 0},
      {"by node, captured at -5, launched at 0", true, -5, 0, 0},
      {"by node, captured at 0, launched at -5", true, 0, -5, -5},
  };
  for (const Case& one : cases) {
    CUgraph graph;
    CUgraphExec exec;
    set_level(capture, one.captured);
    CHECK(cuStreamBeginCapture(capture, CU_STREAM_CAPTURE_MODE_RELAXED));
    last<<<264, 128, 0, capture>>>(times + 1);
    CHECK(cuStreamEndCapture(capture, &graph));
    CHECK(cuGraphInstantiate(&exec, graph, one.by_node ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cudaDeviceSynchronize());
    std::vector<double> us;
    for (int i = 0; i < 20; ++i) {
      times[0] = times[1] = 0;
      fill<<<20 * 132 * 16, 128, 0, busy>>>(100000);  // 2 ms in all
      set_level(stream, -5);
      first<<<1, 1, 0, stream>>>(500000, times);
      set_level(stream, one.launched);
      CHECK(cuGraphLaunch(exec, stream));
      set_level(stream, one.after);
      CHECK(cudaDeviceSynchronize());
      us.push_back((static_cast<double>(times[1]) - static_cast<double>(times[0])) / 1e3);
    }
    std::sort(us.begin(), us.end());
    std::printf("%s: median %.0f us (%.0f to %.0f)\n", one.what, us[us.size() / 2], us.front(), us.back());
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
  }
  int reads = 0;
  CUgraph graph;
  CUgraphNode node;
  std::size_t count = 1;
  set_level(capture, -3);
  CHECK(cuStreamBeginCapture(capture, CU_STREAM_CAPTURE_MODE_RELAXED));
  set_level(capture, -1);
  last<<<1, 128, 0, capture>>>(times + 1);
  CHECK(cuStreamEndCapture(capture, &graph));
  CHECK(cuGraphGetNodes(graph, &node, &count));
  CUkernelNodeAttrValue value{};
  CHECK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  reads = value.priority;
  std::printf("stream set from -3 to -1 within a capture: the node says %d\n", reads);
  return 0;
}
