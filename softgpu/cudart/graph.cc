// cudaGraph* and stream capture: the driver's functions under other names, with the runtime's descriptions of kernels,
// copies and memsets. Not supported: the functions that describe nodes (cudaGraphKernelNodeGetParams and similar),
// symbols, arrays, semaphores.
#include <cuda_runtime_api.h>

#include "softgpu/cudart/driver.h"
#include "softgpu/cudart/error.h"
#include "softgpu/cudart/registration.h"

using namespace gpuctl::softgpu::cudart;

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData) &&
              sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) &&
              sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo) &&
              sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));

namespace {

CUcontext current_context() {
  CUcontext context = nullptr;
  return DRIVER(cuCtxGetCurrent)(&context) == CUDA_SUCCESS ? context : nullptr;
}

/// Runs `body(params)` with the driver's description of a kernel node.
template <class Body>
cudaError_t with_kernel_params(const cudaKernelNodeParams* node, Body&& body) {
  if (node == nullptr) return report(cudaErrorInvalidValue);
  CUDA_KERNEL_NODE_PARAMS params{};
  CUresult result = CUDA_SUCCESS;
  params.kern = find_kernel(node->func, &result);
  if (result == CUDA_SUCCESS) result = enter();
  if (result != CUDA_SUCCESS) return report(result);
  params.gridDimX = node->gridDim.x;
  params.gridDimY = node->gridDim.y;
  params.gridDimZ = node->gridDim.z;
  params.blockDimX = node->blockDim.x;
  params.blockDimY = node->blockDim.y;
  params.blockDimZ = node->blockDim.z;
  params.sharedMemBytes = node->sharedMemBytes;
  params.kernelParams = node->kernelParams;
  params.extra = node->extra;
  return report(body(params));
}

CUmemorytype end_type(cudaMemcpyKind kind, cudaMemcpyKind other_kind_with_host) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  return kind == cudaMemcpyHostToHost || kind == other_kind_with_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUDA_MEMCPY3D flat_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = end_type(kind, cudaMemcpyHostToDevice);
  copy.dstMemoryType = end_type(kind, cudaMemcpyDeviceToHost);
  copy.srcHost = from;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(from);
  copy.dstHost = to;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(to);
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return copy;
}

CUDA_MEMSET_NODE_PARAMS driver_set(const cudaMemsetParams& set) {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = reinterpret_cast<CUdeviceptr>(set.dst);
  params.pitch = set.pitch;
  params.value = set.value;
  params.elementSize = set.elementSize;
  params.width = set.width;
  params.height = set.height;
  return params;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  return RUN(cuStreamBeginCapture, stream, static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t CUDARTAPI cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                    const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* data,
                                                    size_t count, enum cudaStreamCaptureMode mode) {
  return RUN(cuStreamBeginCaptureToGraph, stream, graph, dependencies, reinterpret_cast<const CUgraphEdgeData*>(data),
             count, static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return RUN(cuStreamEndCapture, stream, graph);
}

cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* status,
                                               unsigned long long* id, cudaGraph_t* graph,
                                               const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                               size_t* count) {
  cuuint64_t number = 0;
  const cudaError_t error = RUN(cuStreamGetCaptureInfo, stream, reinterpret_cast<CUstreamCaptureStatus*>(status),
                                &number, graph, dependencies, reinterpret_cast<const CUgraphEdgeData**>(edges), count);
  if (id != nullptr) *id = number;
  return error;
}

cudaError_t CUDARTAPI cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                          const cudaGraphEdgeData* data, size_t count,
                                                          unsigned int flags) {
  return RUN(cuStreamUpdateCaptureDependencies, stream, dependencies, reinterpret_cast<const CUgraphEdgeData*>(data),
             count, flags);
}

cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return RUN(cuThreadExchangeStreamCaptureMode, reinterpret_cast<CUstreamCaptureMode*>(mode));
}

cudaError_t CUDARTAPI cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return RUN(cuGraphCreate, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph) {
  return RUN(cuGraphDestroy, graph);
}

cudaError_t CUDARTAPI cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return RUN(cuGraphClone, clone, graph);
}

cudaError_t CUDARTAPI cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
  return RUN(cuGraphNodeFindInClone, node, original, clone);
}

cudaError_t CUDARTAPI cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return RUN(cuGraphGetNodes, graph, nodes, count);
}

cudaError_t CUDARTAPI cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return RUN(cuGraphGetRootNodes, graph, nodes, count);
}

cudaError_t CUDARTAPI cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType* type) {
  return RUN(cuGraphNodeGetType, node, reinterpret_cast<CUgraphNodeType*>(type));
}

cudaError_t CUDARTAPI cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                               const cudaGraphNode_t* to, const cudaGraphEdgeData* data, size_t count) {
  return RUN(cuGraphAddDependencies, graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(data), count);
}

cudaError_t CUDARTAPI cudaGraphDestroyNode(cudaGraphNode_t node) {
  return RUN(cuGraphDestroyNode, node);
}

cudaError_t CUDARTAPI cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             const struct cudaKernelNodeParams* kernel) {
  return with_kernel_params(kernel, [&](const CUDA_KERNEL_NODE_PARAMS& params) {
    return DRIVER(cuGraphAddKernelNode)(node, graph, dependencies, count, &params);
  });
}

cudaError_t CUDARTAPI cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams* kernel) {
  return with_kernel_params(
      kernel, [&](const CUDA_KERNEL_NODE_PARAMS& params) { return DRIVER(cuGraphKernelNodeSetParams)(node, &params); });
}

cudaError_t CUDARTAPI cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                               const cudaGraphNode_t* dependencies, size_t count, void* to,
                                               const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  const CUDA_MEMCPY3D copy = flat_copy(to, from, bytes, kind);
  return RUN(cuGraphAddMemcpyNode, node, graph, dependencies, count, &copy, current_context());
}

cudaError_t CUDARTAPI cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             const struct cudaMemsetParams* set) {
  if (set == nullptr) return report(cudaErrorInvalidValue);
  const CUDA_MEMSET_NODE_PARAMS params = driver_set(*set);
  return RUN(cuGraphAddMemsetNode, node, graph, dependencies, count, &params, current_context());
}

cudaError_t CUDARTAPI cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count,
                                           const struct cudaHostNodeParams* host) {
  return RUN(cuGraphAddHostNode, node, graph, dependencies, count,
             reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(host));
}

cudaError_t CUDARTAPI cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                 const cudaGraphNode_t* dependencies, size_t count, cudaGraph_t child) {
  return RUN(cuGraphAddChildGraphNode, node, graph, dependencies, count, child);
}

cudaError_t CUDARTAPI cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                            const cudaGraphNode_t* dependencies, size_t count) {
  return RUN(cuGraphAddEmptyNode, node, graph, dependencies, count);
}

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return RUN(cuGraphInstantiateWithFlags, exec, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                    unsigned long long flags) {
  return RUN(cuGraphInstantiateWithFlags, exec, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                     cudaGraphInstantiateParams* params) {
  return RUN(cuGraphInstantiateWithParams, exec, graph, reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params));
}

cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return RUN(cuGraphExecDestroy, exec);
}

cudaError_t CUDARTAPI cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return RUN(cuGraphUpload, exec, stream);
}

cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return RUN(cuGraphLaunch, exec, stream);
}

cudaError_t CUDARTAPI cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                          cudaGraphExecUpdateResultInfo* info) {
  return RUN(cuGraphExecUpdate, exec, graph, reinterpret_cast<CUgraphExecUpdateResultInfo*>(info));
}

cudaError_t CUDARTAPI cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       const struct cudaKernelNodeParams* kernel) {
  return with_kernel_params(kernel, [&](const CUDA_KERNEL_NODE_PARAMS& params) {
    return DRIVER(cuGraphExecKernelNodeSetParams)(exec, node, &params);
  });
}

cudaError_t CUDARTAPI cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled) {
  return RUN(cuGraphNodeSetEnabled, exec, node, enabled);
}

}  // extern "C"
