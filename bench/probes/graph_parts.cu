// Can a graph be confined to a part of a GPU (a green context)? A copy of the graph is made, and each kernel of the
// copy is captured again in a stream of the part, in place of the node that was there. Prints on how many SMs it then
// runs. Build: nvcc -o graph_parts graph_parts.cu
#include <cuda.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

template <class F>
F found(const char* name, unsigned version) {
  void* p = nullptr;
  cudaDriverEntryPointQueryResult query;
  cudaGetDriverEntryPointByVersion(name, &p, version, cudaEnableDefault, &query);
  return reinterpret_cast<F>(p);
}
#define D(name) static decltype(&name) d_##name
D(cuDeviceGetDevResource);
D(cuDevSmResourceSplitByCount);
D(cuDevResourceGenerateDesc);
D(cuGreenCtxCreate);
D(cuGreenCtxStreamCreate);
D(cuStreamBeginCaptureToGraph);
D(cuStreamEndCapture);
D(cuStreamGetCaptureInfo_v3);
D(cuGraphClone);
D(cuGraphGetNodes);
D(cuGraphNodeGetType);
D(cuGraphNodeGetDependencies_v2);
D(cuGraphNodeGetDependentNodes_v2);
D(cuGraphAddDependencies_v2);
D(cuGraphDestroyNode);
D(cuGraphKernelNodeGetParams_v2);
D(cuGraphKernelNodeGetAttribute);
D(cuGraphKernelNodeSetAttribute);
D(cuLaunchKernel);

static unsigned* seen;

__device__ void note(unsigned* seen) {
  unsigned sm;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  if (threadIdx.x == 0) atomicAdd(&seen[sm], 1);
  long long now, begin;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < 20000);
}
__global__ void ids(unsigned* seen) {
  note(seen);
}
__global__ void __cluster_dims__(2, 1, 1) in_clusters(unsigned* seen) {
  note(seen);
}
__global__ void early(unsigned* seen) {
  cudaTriggerProgrammaticLaunchCompletion();
  note(seen);
}
__global__ void late(unsigned* seen) {
  cudaGridDependencySynchronize();
  note(seen);
}

static int count() {
  int n = 0;
  for (int i = 0; i < 1024; ++i) n += seen[i] != 0;
  memset(seen, 0, 4096);
  return n;
}

/// Puts every kernel of `graph` into the part of `stream`. Returns what the driver refused, 0 if nothing.
static int confine(CUgraph graph, CUstream stream) {
  size_t n = 0;
  d_cuGraphGetNodes(graph, nullptr, &n);
  std::vector<CUgraphNode> nodes(n);
  d_cuGraphGetNodes(graph, nodes.data(), &n);
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type;
    d_cuGraphNodeGetType(node, &type);
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    CUDA_KERNEL_NODE_PARAMS p{};
    if (d_cuGraphKernelNodeGetParams_v2(node, &p)) return 1;
    size_t before = 0, after = 0;
    d_cuGraphNodeGetDependencies_v2(node, nullptr, nullptr, &before);
    d_cuGraphNodeGetDependentNodes_v2(node, nullptr, nullptr, &after);
    std::vector<CUgraphNode> from(before), to(after), made(before + after);
    std::vector<CUgraphEdgeData> in(before), out(after);
    if (before && d_cuGraphNodeGetDependencies_v2(node, from.data(), in.data(), &before)) return 2;
    if (after && d_cuGraphNodeGetDependentNodes_v2(node, to.data(), out.data(), &after)) return 3;
    if (int r = d_cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, CU_STREAM_CAPTURE_MODE_RELAXED))
      return printf("begin %d ", r), 4;
    CUfunction f = p.func ? p.func : reinterpret_cast<CUfunction>(p.kern);
    const int launched = d_cuLaunchKernel(f, p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ,
                                          p.sharedMemBytes, stream, p.kernelParams, p.extra);
    CUstreamCaptureStatus status;
    const CUgraphNode* last = nullptr;
    size_t lasts = 0;
    d_cuStreamGetCaptureInfo_v3(stream, &status, nullptr, nullptr, &last, nullptr, &lasts);
    CUgraphNode copy = lasts == 1 ? last[0] : nullptr;
    CUgraph same = nullptr;
    const int ended = d_cuStreamEndCapture(stream, &same);
    if (launched || ended || !copy) return printf("launched %d ended %d %p ", launched, ended, copy), 5;
    for (int id = 1; id < 20; ++id) {  // cuGraphKernelNodeCopyAttributes wants one context
      CUlaunchAttributeValue value{}, there{};
      const auto which = static_cast<CUlaunchAttributeID>(id);
      if (d_cuGraphKernelNodeGetAttribute(node, which, &value)) continue;
      const bool known = !d_cuGraphKernelNodeGetAttribute(copy, which, &there);
      if (known && !memcmp(&value, &there, sizeof value)) continue;
      printf("[attribute %d: %d] ", id, d_cuGraphKernelNodeSetAttribute(copy, which, &value));
    }
    std::vector<CUgraphNode> itself(before + after, copy);
    if (before)
      if (int r = d_cuGraphAddDependencies_v2(graph, from.data(), itself.data(), in.data(), before))
        return printf("before %d ", r), 7;
    if (after)
      if (int r = d_cuGraphAddDependencies_v2(graph, itself.data(), to.data(), out.data(), after))
        return printf("after %d ", r), 8;
    if (int r = d_cuGraphDestroyNode(node)) return printf("destroy %d ", r), 9;
  }
  return 0;
}

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  cudaSetDevice(0);
  cudaHostAlloc(&seen, 4096, 0);
  memset(seen, 0, 4096);
#define FIND(name, version) d_##name = found<decltype(&name)>(#name, version)
  FIND(cuDeviceGetDevResource, 12040);
  FIND(cuDevSmResourceSplitByCount, 12040);
  FIND(cuDevResourceGenerateDesc, 12040);
  FIND(cuGreenCtxCreate, 12040);
  FIND(cuGreenCtxStreamCreate, 12050);
  FIND(cuStreamBeginCaptureToGraph, 12030);
  FIND(cuStreamEndCapture, 10000);
  FIND(cuGraphClone, 10000);
  FIND(cuGraphGetNodes, 10000);
  FIND(cuGraphNodeGetType, 10000);
  FIND(cuGraphDestroyNode, 10000);
  FIND(cuGraphKernelNodeGetAttribute, 11000);
  FIND(cuGraphKernelNodeSetAttribute, 11000);
  FIND(cuLaunchKernel, 4000);
  d_cuStreamGetCaptureInfo_v3 = found<decltype(&cuStreamGetCaptureInfo_v3)>("cuStreamGetCaptureInfo", 12030);
  d_cuGraphNodeGetDependencies_v2 =
      found<decltype(&cuGraphNodeGetDependencies_v2)>("cuGraphNodeGetDependencies", 12030);
  d_cuGraphNodeGetDependentNodes_v2 =
      found<decltype(&cuGraphNodeGetDependentNodes_v2)>("cuGraphNodeGetDependentNodes", 12030);
  d_cuGraphAddDependencies_v2 = found<decltype(&cuGraphAddDependencies_v2)>("cuGraphAddDependencies", 12030);
  d_cuGraphKernelNodeGetParams_v2 =
      found<decltype(&cuGraphKernelNodeGetParams_v2)>("cuGraphKernelNodeGetParams", 12000);

  CUdevResource all, part[66], rest;
  CUstream parts[2];
  d_cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
  for (int pairs = 0; pairs < 2; ++pairs) {
    unsigned n = pairs ? 66 : 1;
    d_cuDevSmResourceSplitByCount(part, &n, &all, &rest, pairs ? CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0,
                                  pairs ? 2 : 96);
    CUdevResourceDesc description;
    CUgreenCtx green;
    const int a = d_cuDevResourceGenerateDesc(&description, part, pairs ? 49 : 1);
    const int b = d_cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    const int c = d_cuGreenCtxStreamCreate(&parts[pairs], green, CU_STREAM_NON_BLOCKING, 0);
    printf("a part of %s: %d %d %d\n", pairs ? "49 pairs" : "96 SMs, in groups", a, b, c);
  }

  cudaStream_t plain, other;
  cudaStreamCreateWithPriority(&plain, cudaStreamNonBlocking, -3);
  cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 0);
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  void* memory;
  cudaMalloc(&memory, 1024);

  for (const char* kind : {"a chain with a memset", "branches", "clusters of two", "programmatic", "long"}) {
    cudaGraph_t graph;
    cudaStreamBeginCapture(plain, cudaStreamCaptureModeRelaxed);
    const int length = !strcmp(kind, "long") ? 100 : 3;
    if (!strcmp(kind, "branches")) {
      cudaEventRecord(event, plain);
      cudaStreamWaitEvent(other, event, 0);
      ids<<<264, 1024, 0, other>>>(seen);
      ids<<<264, 1024, 0, plain>>>(seen);
      cudaEventRecord(event, other);
      cudaStreamWaitEvent(plain, event, 0);
      ids<<<264, 1024, 0, plain>>>(seen);
    } else if (!strcmp(kind, "clusters of two")) {
      in_clusters<<<264, 1024, 0, plain>>>(seen);
    } else if (!strcmp(kind, "programmatic")) {
      early<<<264, 1024, 0, plain>>>(seen);
      cudaLaunchConfig_t config{};
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      config.gridDim = 264;
      config.blockDim = 1024;
      config.stream = plain;
      config.attrs = &attribute;
      config.numAttrs = 1;
      cudaLaunchKernelEx(&config, late, seen);
    } else {
      for (int i = 0; i < length; ++i) {
        ids<<<264, 1024, 0, plain>>>(seen);
        if (i == 0) cudaMemsetAsync(memory, 0, 1024, plain);
      }
    }
    const int captured = cudaStreamEndCapture(plain, &graph);
    for (int pairs = 0; pairs < 2; ++pairs) {
      CUgraph copy;
      const int cloned = d_cuGraphClone(&copy, graph);
      const auto begin = std::chrono::steady_clock::now();
      const int refused = confine(copy, parts[pairs]);
      const auto middle = std::chrono::steady_clock::now();
      cudaGraphExec_t exec;
      const int made = cudaGraphInstantiate(&exec, copy, cudaGraphInstantiateFlagUseNodePriority);
      const auto end = std::chrono::steady_clock::now();
      memset(seen, 0, 4096);
      const int launched = cudaGraphLaunch(exec, plain);
      const int done = cudaStreamSynchronize(plain);
      const auto us = [](auto a, auto b) { return std::chrono::duration<double, std::micro>(b - a).count(); };
      printf(
          "%s, in %s: captured %d cloned %d refused %d instantiated %d launched %d %d: %d SMs; %.0f us and %.0f us to "
          "instantiate\n",
          kind, pairs ? "pairs" : "groups", captured, cloned, refused, made, launched, done, count(), us(begin, middle),
          us(middle, end));
    }
  }
}
