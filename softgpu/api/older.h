// Entry points that cuda.h names only by macro or no longer declares: earlier versions that programs may still request,
// and the variants for which stream 0 is the per-thread default stream.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

// The types that cudaTypedefs.h hides with them.
using PFN_cuDevicePrimaryCtxRelease_v7000 = PFN_cuDevicePrimaryCtxRelease_v11000;
using PFN_cuDevicePrimaryCtxReset_v7000 = PFN_cuDevicePrimaryCtxReset_v11000;
using PFN_cuDevicePrimaryCtxSetFlags_v7000 = PFN_cuDevicePrimaryCtxSetFlags_v11000;
using PFN_cuGraphInstantiate_v10000 = CUresult(CUDAAPI*)(CUgraphExec* result, CUgraph graph, CUgraphNode* error_node,
                                                         char* log, size_t log_bytes);
using PFN_cuGraphInstantiate_v11000 = PFN_cuGraphInstantiate_v10000;
using PFN_cuGraphInstantiate_v12000 = PFN_cuGraphInstantiateWithFlags_v11040;
using PFN_cuMemHostRegister_v4000 = PFN_cuMemHostRegister_v6050;

#undef cuCtxCreate
#undef cuDeviceGetUuid
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuEventElapsedTime
#undef cuGetProcAddress
#undef cuGraphAddDependencies
#undef cuGraphAddKernelNode
#undef cuGraphAddNode
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuGraphGetEdges
#undef cuGraphInstantiate
#undef cuGraphKernelNodeGetParams
#undef cuGraphKernelNodeSetParams
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes
#undef cuGraphRemoveDependencies
#undef cuMemHostRegister
#undef cuStreamBatchMemOp
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo
#undef cuStreamUpdateCaptureDependencies
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64

extern "C" {

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* result, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuCtxCreate_v3(CUcontext* result, CUexecAffinityParam* affinity, int count, unsigned int flags,
                                CUdevice device);
CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device);
CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device);
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags);
CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end);
CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count);
CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1* kernel);
CUresult CUDAAPI cuGraphAddNode(CUgraphNode* result, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                CUgraphNodeParams* params);
CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1* kernel);
CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                                   CUgraphExecUpdateResult* result);
CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count);
CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* result, CUgraph graph, CUgraphNode* error_node, char* log,
                                    size_t log_bytes);
CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* result, CUgraph graph, CUgraphNode* error_node, char* log,
                                       size_t log_bytes);
CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params);
CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* kernel);
CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count);
CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count);
CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count);
CUresult CUDAAPI cuMemHostRegister(void* pointer, size_t bytes, unsigned int flags);
CUresult CUDAAPI cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* entries,
                                    unsigned int flags);
CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id);
CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                           CUgraph* graph, const CUgraphNode** dependencies, size_t* count);
CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count,
                                                   unsigned int flags);
CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags);
CUresult CUDAAPI cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags);
CUresult CUDAAPI cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags);
CUresult CUDAAPI cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags);

}  // extern "C"
