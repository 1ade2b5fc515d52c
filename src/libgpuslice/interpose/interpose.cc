// How a program's driver calls reach the wrappers. There are three ways, and all must lead to the same wrappers:
//
// - A program linked with libcuda: our exported functions of the same names come first in symbol order.
// - dlsym: ours (dlsym_*.S, resolve.cc) returns the wrappers for the names in the table below.
// - cuGetProcAddress: the CUDA runtime gets it by dlsym and then asks it for everything, itself included. Ours asks the
//   driver first, so that a function that this driver lacks stays missing, and then returns the wrapper from the table.
//   These symbols have no version suffix: the requested version and the kind of default stream select the variant.
//
// A function that must only make lanes join is a row of joining_functions.inc (joining.h). To add another wrapper,
// write it in a file of this room, declare it below if cuda.h does not, and add one row.
#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/interpose/joining_functions.h"

using gpuslice::Hook;

GPUSLICE_HOOK cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status);
#undef cuGetProcAddress
GPUSLICE_HOOK cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
GPUSLICE_HOOK cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                  CUstream, void**, void**);
GPUSLICE_HOOK cuLaunchKernelEx_ptsz(const CUlaunchConfig*, CUfunction, void**, void**);
GPUSLICE_HOOK cuLaunchCooperativeKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                             unsigned, CUstream, void**);
GPUSLICE_HOOK cuMemAllocAsync_ptsz(CUdeviceptr*, size_t, CUstream);
GPUSLICE_HOOK cuMemAllocFromPoolAsync_ptsz(CUdeviceptr*, size_t, CUmemoryPool, CUstream);
GPUSLICE_HOOK cuMemFreeAsync_ptsz(CUdeviceptr, CUstream);
GPUSLICE_HOOK cuMemGetDefaultMemPool(CUmemoryPool*, CUmemLocation*, CUmemAllocationType);
GPUSLICE_HOOK cuMemGetMemPool(CUmemoryPool*, CUmemLocation*, CUmemAllocationType);
GPUSLICE_HOOK cuStreamGetPriority_ptsz(CUstream, int*);
GPUSLICE_HOOK cuStreamGetAttribute_ptsz(CUstream, CUstreamAttrID, CUstreamAttrValue*);
GPUSLICE_HOOK cuStreamSetAttribute_ptsz(CUstream, CUstreamAttrID, const CUstreamAttrValue*);
GPUSLICE_HOOK cuStreamCopyAttributes_ptsz(CUstream, CUstream);
#undef cuStreamDestroy
#undef cuCtxDestroy
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
GPUSLICE_HOOK cuStreamDestroy(CUstream);
GPUSLICE_HOOK cuCtxDestroy(CUcontext);
GPUSLICE_HOOK cuDevicePrimaryCtxRelease(CUdevice);
GPUSLICE_HOOK cuDevicePrimaryCtxReset(CUdevice);
#undef cuStreamBeginCapture
GPUSLICE_HOOK cuStreamBeginCapture(CUstream);
GPUSLICE_HOOK cuStreamBeginCapture_ptsz(CUstream);
GPUSLICE_HOOK cuStreamBeginCapture_v2_ptsz(CUstream, CUstreamCaptureMode);
GPUSLICE_HOOK cuStreamBeginCaptureToGraph_ptsz(CUstream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t,
                                               CUstreamCaptureMode);
GPUSLICE_HOOK cuStreamBeginRecaptureToGraph(CUstream, CUstreamCaptureMode, CUgraph, CUgraphRecaptureCallback, void*);
GPUSLICE_HOOK cuStreamBeginRecaptureToGraph_ptsz(CUstream, CUstreamCaptureMode, CUgraph, CUgraphRecaptureCallback,
                                                 void*);
GPUSLICE_HOOK cuStreamEndCapture_ptsz(CUstream, CUgraph*);
GPUSLICE_HOOK cuStreamWaitEvent_ptsz(CUstream, CUevent, unsigned);
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamBatchMemOp
GPUSLICE_HOOK cuLaunchHostFunc_ptsz(CUstream, CUhostFn, void*);
GPUSLICE_HOOK cuLaunchHostFunc_v2(CUstream, CUhostFn, void*, unsigned);
GPUSLICE_HOOK cuLaunchHostFunc_v2_ptsz(CUstream, CUhostFn, void*, unsigned);
GPUSLICE_HOOK cuStreamAddCallback_ptsz(CUstream, CUstreamCallback, void*, unsigned);
GPUSLICE_HOOK cuStreamWaitValue32(CUstream, CUdeviceptr, cuuint32_t, unsigned);
GPUSLICE_HOOK cuStreamWaitValue32_ptsz(CUstream, CUdeviceptr, cuuint32_t, unsigned);
GPUSLICE_HOOK cuStreamWaitValue32_v2_ptsz(CUstream, CUdeviceptr, cuuint32_t, unsigned);
GPUSLICE_HOOK cuStreamWaitValue64(CUstream, CUdeviceptr, cuuint64_t, unsigned);
GPUSLICE_HOOK cuStreamWaitValue64_ptsz(CUstream, CUdeviceptr, cuuint64_t, unsigned);
GPUSLICE_HOOK cuStreamWaitValue64_v2_ptsz(CUstream, CUdeviceptr, cuuint64_t, unsigned);
GPUSLICE_HOOK cuStreamBatchMemOp(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
GPUSLICE_HOOK cuStreamBatchMemOp_ptsz(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
GPUSLICE_HOOK cuStreamBatchMemOp_v2_ptsz(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
GPUSLICE_HOOK cuWaitExternalSemaphoresAsync_ptsz(const CUexternalSemaphore*, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS*,
                                                 unsigned, CUstream);
#undef cuGraphInstantiate
#undef cuGraphExecUpdate
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphAddNode
GPUSLICE_HOOK cuGraphInstantiate(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
GPUSLICE_HOOK cuGraphInstantiate_v2(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
GPUSLICE_HOOK cuGraphInstantiateWithParams_ptsz(CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*);
GPUSLICE_HOOK cuGraphLaunch_ptsz(CUgraphExec, CUstream);
GPUSLICE_HOOK cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);
GPUSLICE_HOOK cuGraphExecUpdate(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*);
GPUSLICE_HOOK cuGraphAddNode(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraphNodeParams*);
GPUSLICE_HOOK cuGraphAddNode_v3(CUgraphNode*, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t,
                                CUgraphNodeParams*);

namespace gpuslice {

namespace {

#define ROW(exported, symbol, since, per_thread) \
  { #exported, symbol, since, per_thread, reinterpret_cast < void*>(&exported) }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // deprecated functions still exist, and programs call them
const Hook kHooks[] = {
    ROW(cuGetProcAddress_v2, "cuGetProcAddress", 12000, false),
    ROW(cuGetProcAddress, "cuGetProcAddress", 11030, false),
    ROW(cuInit, "cuInit", 2000, false),
    ROW(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, false),
    ROW(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 3020, false),
    ROW(cuOccupancyMaxPotentialBlockSize, "cuOccupancyMaxPotentialBlockSize", 6050, false),
    ROW(cuOccupancyMaxPotentialBlockSizeWithFlags, "cuOccupancyMaxPotentialBlockSizeWithFlags", 7000, false),
    ROW(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", 11070, false),
    ROW(cuCtxGetExecAffinity, "cuCtxGetExecAffinity", 11040, false),
    ROW(cuModuleLoad, "cuModuleLoad", 2000, false),
    ROW(cuModuleLoadData, "cuModuleLoadData", 2000, false),
    ROW(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, false),
    ROW(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, false),
    ROW(cuModuleUnload, "cuModuleUnload", 2000, false),
    ROW(cuModuleGetFunction, "cuModuleGetFunction", 2000, false),
    ROW(cuModuleGetFunctionCount, "cuModuleGetFunctionCount", 12040, false),
    ROW(cuModuleEnumerateFunctions, "cuModuleEnumerateFunctions", 12040, false),
    ROW(cuLinkCreate_v2, "cuLinkCreate", 6050, false),
    ROW(cuLinkAddData_v2, "cuLinkAddData", 6050, false),
    ROW(cuLinkAddFile_v2, "cuLinkAddFile", 6050, false),
    ROW(cuLinkComplete, "cuLinkComplete", 5050, false),
    ROW(cuLinkDestroy, "cuLinkDestroy", 5050, false),
    ROW(cuLibraryLoadData, "cuLibraryLoadData", 12000, false),
    ROW(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000, false),
    ROW(cuLibraryUnload, "cuLibraryUnload", 12000, false),
    ROW(cuLibraryGetKernel, "cuLibraryGetKernel", 12000, false),
    ROW(cuLibraryGetKernelCount, "cuLibraryGetKernelCount", 12040, false),
    ROW(cuLibraryEnumerateKernels, "cuLibraryEnumerateKernels", 12040, false),
    ROW(cuLibraryGetModule, "cuLibraryGetModule", 12000, false),
    ROW(cuKernelGetFunction, "cuKernelGetFunction", 12000, false),
    ROW(cuKernelSetAttribute, "cuKernelSetAttribute", 12000, false),
    ROW(cuKernelSetCacheConfig, "cuKernelSetCacheConfig", 12000, false),
    ROW(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, false),
    ROW(cuFuncSetCacheConfig, "cuFuncSetCacheConfig", 3000, false),
    ROW(cuLaunchKernel, "cuLaunchKernel", 4000, false),
    ROW(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, true),
    ROW(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, false),
    ROW(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, true),
    ROW(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, false),
    ROW(cuLaunchCooperativeKernel_ptsz, "cuLaunchCooperativeKernel", 9000, true),
    ROW(cuMemAlloc_v2, "cuMemAlloc", 3020, false),
    ROW(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, false),
    ROW(cuMemAllocManaged, "cuMemAllocManaged", 6000, false),
    ROW(cuMemAllocAsync, "cuMemAllocAsync", 11020, false),
    ROW(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, true),
    ROW(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, false),
    ROW(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, true),
    ROW(cuMemFreeAsync, "cuMemFreeAsync", 11020, false),
    ROW(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, true),
    ROW(cuMemPoolCreate, "cuMemPoolCreate", 11020, false),
    ROW(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, false),
    ROW(cuMemGetDefaultMemPool, "cuMemGetDefaultMemPool", 13000, false),
    ROW(cuMemGetMemPool, "cuMemGetMemPool", 13000, false),
    ROW(cuDeviceGraphMemTrim, "cuDeviceGraphMemTrim", 11040, false),
    ROW(cuMemCreate, "cuMemCreate", 10020, false),
    ROW(cuMemRelease, "cuMemRelease", 10020, false),
    ROW(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, false),
    ROW(cuMemMap, "cuMemMap", 10020, false),
    ROW(cuMemUnmap, "cuMemUnmap", 10020, false),
    ROW(cuMemGetInfo_v2, "cuMemGetInfo", 3020, false),
    ROW(cuMemFree_v2, "cuMemFree", 3020, false),
    ROW(cuMemFreeHost, "cuMemFreeHost", 2000, false),
    ROW(cuMemHostUnregister, "cuMemHostUnregister", 4000, false),
    ROW(cuArrayCreate_v2, "cuArrayCreate", 3020, false),
    ROW(cuArray3DCreate_v2, "cuArray3DCreate", 3020, false),
    ROW(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, false),
    ROW(cuArrayDestroy, "cuArrayDestroy", 2000, false),
    ROW(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", 5000, false),
    ROW(cuCtxDestroy_v2, "cuCtxDestroy", 4000, false),
    ROW(cuCtxDestroy, "cuCtxDestroy", 2000, false),
    ROW(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, false),
    ROW(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, false),
    ROW(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, false),
    ROW(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, false),
    ROW(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, false),
    ROW(cuStreamCreate, "cuStreamCreate", 2000, false),
    ROW(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, false),
    ROW(cuStreamGetPriority, "cuStreamGetPriority", 5050, false),
    ROW(cuStreamGetPriority_ptsz, "cuStreamGetPriority", 7000, true),
    ROW(cuStreamGetAttribute, "cuStreamGetAttribute", 11000, false),
    ROW(cuStreamGetAttribute_ptsz, "cuStreamGetAttribute", 11000, true),
    ROW(cuStreamSetAttribute, "cuStreamSetAttribute", 11000, false),
    ROW(cuStreamSetAttribute_ptsz, "cuStreamSetAttribute", 11000, true),
    ROW(cuStreamCopyAttributes, "cuStreamCopyAttributes", 11000, false),
    ROW(cuStreamCopyAttributes_ptsz, "cuStreamCopyAttributes", 11000, true),
    ROW(cuStreamDestroy_v2, "cuStreamDestroy", 4000, false),
    ROW(cuStreamDestroy, "cuStreamDestroy", 2000, false),
    ROW(cuStreamBeginCapture, "cuStreamBeginCapture", 10000, false),
    ROW(cuStreamBeginCapture_ptsz, "cuStreamBeginCapture", 10000, true),
    ROW(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, false),
    ROW(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, true),
    ROW(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, false),
    ROW(cuStreamBeginCaptureToGraph_ptsz, "cuStreamBeginCaptureToGraph", 12030, true),
    ROW(cuStreamBeginRecaptureToGraph, "cuStreamBeginRecaptureToGraph", 13030, false),
    ROW(cuStreamBeginRecaptureToGraph_ptsz, "cuStreamBeginRecaptureToGraph", 13030, true),
    ROW(cuStreamEndCapture, "cuStreamEndCapture", 10000, false),
    ROW(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, true),
    ROW(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, false),
    ROW(cuStreamWaitEvent_ptsz, "cuStreamWaitEvent", 7000, true),
    ROW(cuLaunchHostFunc, "cuLaunchHostFunc", 10000, false),
    ROW(cuLaunchHostFunc_ptsz, "cuLaunchHostFunc", 10000, true),
    ROW(cuLaunchHostFunc_v2, "cuLaunchHostFunc", 13010, false),
    ROW(cuLaunchHostFunc_v2_ptsz, "cuLaunchHostFunc", 13010, true),
    ROW(cuStreamAddCallback, "cuStreamAddCallback", 5000, false),
    ROW(cuStreamAddCallback_ptsz, "cuStreamAddCallback", 7000, true),
    ROW(cuStreamWaitValue32, "cuStreamWaitValue32", 8000, false),
    ROW(cuStreamWaitValue32_ptsz, "cuStreamWaitValue32", 8000, true),
    ROW(cuStreamWaitValue32_v2, "cuStreamWaitValue32", 11070, false),
    ROW(cuStreamWaitValue32_v2_ptsz, "cuStreamWaitValue32", 11070, true),
    ROW(cuStreamWaitValue64, "cuStreamWaitValue64", 9000, false),
    ROW(cuStreamWaitValue64_ptsz, "cuStreamWaitValue64", 9000, true),
    ROW(cuStreamWaitValue64_v2, "cuStreamWaitValue64", 11070, false),
    ROW(cuStreamWaitValue64_v2_ptsz, "cuStreamWaitValue64", 11070, true),
    ROW(cuStreamBatchMemOp, "cuStreamBatchMemOp", 8000, false),
    ROW(cuStreamBatchMemOp_ptsz, "cuStreamBatchMemOp", 8000, true),
    ROW(cuStreamBatchMemOp_v2, "cuStreamBatchMemOp", 11070, false),
    ROW(cuStreamBatchMemOp_v2_ptsz, "cuStreamBatchMemOp", 11070, true),
    ROW(cuWaitExternalSemaphoresAsync, "cuWaitExternalSemaphoresAsync", 10000, false),
    ROW(cuWaitExternalSemaphoresAsync_ptsz, "cuWaitExternalSemaphoresAsync", 10000, true),
    ROW(cuGraphInstantiate, "cuGraphInstantiate", 10000, false),
    ROW(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, false),
    ROW(cuGraphInstantiateWithFlags, "cuGraphInstantiate", 12000, false),
    ROW(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, false),
    ROW(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000, false),
    ROW(cuGraphInstantiateWithParams_ptsz, "cuGraphInstantiateWithParams", 12000, true),
    ROW(cuGraphLaunch, "cuGraphLaunch", 10000, false),
    ROW(cuGraphLaunch_ptsz, "cuGraphLaunch", 10000, true),
    ROW(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams", 10010, false),
    ROW(cuGraphExecKernelNodeSetParams_v2, "cuGraphExecKernelNodeSetParams", 12000, false),
    ROW(cuGraphExecNodeSetParams, "cuGraphExecNodeSetParams", 12020, false),
    ROW(cuGraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams", 10020, false),
    ROW(cuGraphExecMemsetNodeSetParams, "cuGraphExecMemsetNodeSetParams", 10020, false),
    ROW(cuGraphExecEventRecordNodeSetEvent, "cuGraphExecEventRecordNodeSetEvent", 11010, false),
    ROW(cuGraphExecEventWaitNodeSetEvent, "cuGraphExecEventWaitNodeSetEvent", 11010, false),
    ROW(cuGraphExecHostNodeSetParams, "cuGraphExecHostNodeSetParams", 10020, false),
    ROW(cuGraphExecBatchMemOpNodeSetParams, "cuGraphExecBatchMemOpNodeSetParams", 11070, false),
    ROW(cuGraphExecExternalSemaphoresSignalNodeSetParams, "cuGraphExecExternalSemaphoresSignalNodeSetParams", 11020,
        false),
    ROW(cuGraphExecExternalSemaphoresWaitNodeSetParams, "cuGraphExecExternalSemaphoresWaitNodeSetParams", 11020, false),
    ROW(cuGraphExecChildGraphNodeSetParams, "cuGraphExecChildGraphNodeSetParams", 11010, false),
    ROW(cuGraphNodeSetEnabled, "cuGraphNodeSetEnabled", 11060, false),
    ROW(cuGraphExecUpdate, "cuGraphExecUpdate", 10020, false),
    ROW(cuGraphExecUpdate_v2, "cuGraphExecUpdate", 12000, false),
    ROW(cuGraphExecGetFlags, "cuGraphExecGetFlags", 12000, false),
    ROW(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, false),
    ROW(cuGraphAddNode, "cuGraphAddNode", 12020, false),
    ROW(cuGraphAddNode_v2, "cuGraphAddNode", 12030, false),
    ROW(cuGraphAddNode_v3, "cuGraphAddNode", 13040, false),
    ROW(cuGraphDestroyNode, "cuGraphDestroyNode", 10000, false),
    ROW(cuGraphDestroy, "cuGraphDestroy", 10000, false),
#define X(exported, symbol, since, per_thread, before, parameters, arguments) ROW(exported, #symbol, since, per_thread),
#include "libgpuslice/interpose/joining_functions.inc"
#undef X
};
#undef ROW
#pragma GCC diagnostic pop

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t);
using GetProcAddressV2 = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

void replace(const char* symbol, void** function, int version, cuuint64_t flags) {
  if (!symbol || !function || !*function) return;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  if (void* wrapper = find_hook(symbol, version, per_thread)) *function = wrapper;
}

}  // namespace

void* find_hook(std::string_view exported) {
  for (const Hook& hook : kHooks) {
    if (hook.exported == exported) return hook.wrapper;
  }
  return nullptr;
}

void* find_hook(std::string_view symbol, int cuda_version, bool per_thread) {
  const Hook* best = nullptr;
  for (const Hook& hook : kHooks) {
    if (hook.symbol != symbol || hook.since > cuda_version) continue;
    if (hook.per_thread && !per_thread) continue;
    if (!libcuda_function(hook.exported.data())) continue;  // the driver lacks this one and has returned an older one
    // Takes the newest function with that name, and the per-thread variant if there is one and it was asked for.
    if (!best || hook.per_thread > best->per_thread ||
        (hook.per_thread == best->per_thread && hook.since > best->since))
      best = &hook;
  }
  return best ? best->wrapper : nullptr;
}

}  // namespace gpuslice

GPUSLICE_HOOK cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
  static auto real = reinterpret_cast<gpuslice::GetProcAddressV2>(gpuslice::libcuda_function("cuGetProcAddress_v2"));
  if (!real) return CUDA_ERROR_NOT_INITIALIZED;
  CUresult result = real(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS) gpuslice::replace(symbol, function, version, flags);
  return result;
}

GPUSLICE_HOOK cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  static auto real = reinterpret_cast<gpuslice::GetProcAddress>(gpuslice::libcuda_function("cuGetProcAddress"));
  if (!real) return CUDA_ERROR_NOT_INITIALIZED;
  CUresult result = real(symbol, function, version, flags);
  if (result == CUDA_SUCCESS) gpuslice::replace(symbol, function, version, flags);
  return result;
}
