// What it costs to instantiate a graph of N kernels, in time and in host memory, and to launch it.
// Usage: graph_cost N [PAUSE_S]: waits PAUSE_S before the first launch, so that limits may be set meanwhile. Runs
// without gpuctl and in a slice. Build: nvcc -o graph_cost graph_cost.cu
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.h"

__global__ void add(float* values, float more) {
  values[blockIdx.x * blockDim.x + threadIdx.x] += more;
}

static double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Resident memory of this process that no file backs, in KiB.
static double anonymous_kib() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (std::fgets(line, sizeof line, file))
    if (std::strncmp(line, "RssAnon:", 8) == 0) kib = std::atol(line + 8);
  std::fclose(file);
  return static_cast<double>(kib);
}

static void print(const char* what, std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  std::printf("%s %.0f %s (%.0f to %.0f); ", what, values[values.size() / 2], unit, values.front(), values.back());
}

int main(int argc, char** argv) {
  const int kernels = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int pause_s = argc > 2 ? std::atoi(argv[2]) : 0;
  constexpr int kGraphs = 9;
  float* values;
  CHECK(cudaMalloc(&values, 1 << 20));
  CHECK(cudaMemset(values, 0, 1 << 20));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  add<<<8, 128, 0, stream>>>(values, 1);
  CHECK(cudaStreamSynchronize(stream));

  std::vector<cudaGraphExec_t> all;
  std::vector<double> instantiate, memory, first, later;
  for (int i = 0; i < kGraphs; ++i) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < kernels; ++k) add<<<8, 128, 0, stream>>>(values, 1);
    CHECK(cudaStreamEndCapture(stream, &graph));
    const double kib = anonymous_kib(), begin = now_us();
    CHECK(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
    if (i > 0) instantiate.push_back(now_us() - begin);  // the first one makes things for all
    if (i > 0) memory.push_back(anonymous_kib() - kib);
    CHECK(cudaGraphDestroy(graph));
    all.push_back(exec);
  }
  if (pause_s > 0) {
    std::printf("ready\n");
    std::fflush(stdout);
    sleep(pause_s);
  }
  const double kib = anonymous_kib();
  for (cudaGraphExec_t exec : all) {
    double begin = now_us();
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    first.push_back(now_us() - begin);
    begin = now_us();
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    later.push_back(now_us() - begin);
  }
  std::printf("%d kernels: ", kernels);
  print("instantiate", instantiate, "us");
  print("memory", memory, "KiB");
  print("first launch", first, "us");
  print("second launch", later, "us");
  std::printf("memory of all first launches %.0f KiB\n", anonymous_kib() - kib);
  for (cudaGraphExec_t exec : all) CHECK(cudaGraphExecDestroy(exec));
  return 0;
}
