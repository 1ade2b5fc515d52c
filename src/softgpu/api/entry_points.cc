// cuGetProcAddress: every entry point of this driver, by name and version.
//
// A name may have several rows: the caller gets the newest one that is not newer than the requested version. The types
// of cudaTypedefs.h ensure that each row's function has the signature of that version of the name.
#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>

#include <cstring>

#include "softgpu/api/older.h"
#include "softgpu/api/per_thread.h"

extern "C" {
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);
}

namespace {

struct EntryPoint {
  const char* name;      ///< as callers request it, without version suffix
  const char* exported;  ///< the symbol of this library
  int version;           ///< the CUDA version since which the name means this function
  bool per_thread;       ///< the variant for CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
  void* function;
};

// The macros of cuda.h rename some names; arguments of # and ## are not expanded, so `name` stays as it is written.
// clang-format off
#define ROW(name, version, function) \
  {#name, #function, version, false, reinterpret_cast<void*>(static_cast<PFN_##name##_v##version>(function))}
#define ROW_PER_THREAD(name, version, suffix, function) \
  {#name, #function, version, true, reinterpret_cast<void*>(static_cast<PFN_##name##_v##version##suffix>(function))}
// clang-format on

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // programs still request deprecated functions
const EntryPoint kEntryPoints[] = {
    ROW(cuGetErrorString, 6000, cuGetErrorString),
    ROW(cuGetErrorName, 6000, cuGetErrorName),
    ROW(cuInit, 2000, cuInit),
    ROW(cuDriverGetVersion, 2020, cuDriverGetVersion),
    ROW(cuDeviceGet, 2000, cuDeviceGet),
    ROW(cuDeviceGetCount, 2000, cuDeviceGetCount),
    ROW(cuDeviceGetName, 2000, cuDeviceGetName),
    ROW(cuDeviceGetUuid, 9020, cuDeviceGetUuid),
    ROW(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2),
    ROW(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2),
    ROW(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute),
    ROW(cuDeviceComputeCapability, 2000, cuDeviceComputeCapability),
    ROW(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId),
    ROW(cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId),
    ROW(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer),
    ROW(cuDeviceGetP2PAttribute, 8000, cuDeviceGetP2PAttribute),
    ROW(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess),
    ROW(cuCtxDisablePeerAccess, 4000, cuCtxDisablePeerAccess),
    ROW(cuMemcpyPeer, 4000, cuMemcpyPeer),
    ROW_PER_THREAD(cuMemcpyPeer, 7000, _ptds, cuMemcpyPeer_ptds),
    ROW(cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync),
    ROW_PER_THREAD(cuMemcpyPeerAsync, 7000, _ptsz, cuMemcpyPeerAsync_ptsz),
    ROW(cuMemcpy3DPeer, 4000, cuMemcpy3DPeer),
    ROW_PER_THREAD(cuMemcpy3DPeer, 7000, _ptds, cuMemcpy3DPeer_ptds),
    ROW(cuMemcpy3DPeerAsync, 4000, cuMemcpy3DPeerAsync),
    ROW_PER_THREAD(cuMemcpy3DPeerAsync, 7000, _ptsz, cuMemcpy3DPeerAsync_ptsz),
    ROW(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain),
    ROW(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease),
    ROW(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2),
    ROW(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset),
    ROW(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2),
    ROW(cuDevicePrimaryCtxSetFlags, 7000, cuDevicePrimaryCtxSetFlags),
    ROW(cuDevicePrimaryCtxSetFlags, 11000, cuDevicePrimaryCtxSetFlags_v2),
    ROW(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState),
    ROW(cuCtxCreate, 3020, cuCtxCreate_v2),
    ROW(cuCtxCreate, 11040, cuCtxCreate_v3),
    ROW(cuCtxCreate, 12050, cuCtxCreate_v4),
    ROW(cuCtxDestroy, 4000, cuCtxDestroy_v2),
    ROW(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2),
    ROW(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2),
    ROW(cuCtxSetCurrent, 4000, cuCtxSetCurrent),
    ROW(cuCtxGetCurrent, 4000, cuCtxGetCurrent),
    ROW(cuCtxGetDevice, 2000, cuCtxGetDevice),
    ROW(cuCtxGetId, 12000, cuCtxGetId),
    ROW(cuCtxGetApiVersion, 3020, cuCtxGetApiVersion),
    ROW(cuCtxGetFlags, 7000, cuCtxGetFlags),
    ROW(cuCtxSetFlags, 12010, cuCtxSetFlags),
    ROW(cuCtxSynchronize, 2000, cuCtxSynchronize),
    ROW(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange),
    ROW(cuCtxSetLimit, 3010, cuCtxSetLimit),
    ROW(cuCtxGetLimit, 3010, cuCtxGetLimit),
    ROW(cuCtxGetCacheConfig, 3020, cuCtxGetCacheConfig),
    ROW(cuCtxSetCacheConfig, 3020, cuCtxSetCacheConfig),
    ROW(cuModuleLoad, 2000, cuModuleLoad),
    ROW(cuModuleLoadData, 2000, cuModuleLoadData),
    ROW(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx),
    ROW(cuModuleLoadFatBinary, 2000, cuModuleLoadFatBinary),
    ROW(cuModuleUnload, 2000, cuModuleUnload),
    ROW(cuModuleGetFunction, 2000, cuModuleGetFunction),
    ROW(cuModuleGetGlobal, 3020, cuModuleGetGlobal_v2),
    ROW(cuModuleGetFunctionCount, 12040, cuModuleGetFunctionCount),
    ROW(cuModuleEnumerateFunctions, 12040, cuModuleEnumerateFunctions),
    ROW(cuModuleGetLoadingMode, 11070, cuModuleGetLoadingMode),
    ROW(cuLibraryLoadData, 12000, cuLibraryLoadData),
    ROW(cuLibraryLoadFromFile, 12000, cuLibraryLoadFromFile),
    ROW(cuLibraryUnload, 12000, cuLibraryUnload),
    ROW(cuLibraryGetKernel, 12000, cuLibraryGetKernel),
    ROW(cuLibraryGetModule, 12000, cuLibraryGetModule),
    ROW(cuLibraryGetGlobal, 12000, cuLibraryGetGlobal),
    ROW(cuLibraryGetKernelCount, 12040, cuLibraryGetKernelCount),
    ROW(cuLibraryEnumerateKernels, 12040, cuLibraryEnumerateKernels),
    ROW(cuKernelGetFunction, 12000, cuKernelGetFunction),
    ROW(cuKernelGetLibrary, 12050, cuKernelGetLibrary),
    ROW(cuKernelGetAttribute, 12000, cuKernelGetAttribute),
    ROW(cuKernelSetAttribute, 12000, cuKernelSetAttribute),
    ROW(cuKernelSetCacheConfig, 12000, cuKernelSetCacheConfig),
    ROW(cuKernelGetName, 12030, cuKernelGetName),
    ROW(cuKernelGetParamInfo, 12040, cuKernelGetParamInfo),
    ROW(cuFuncGetAttribute, 2020, cuFuncGetAttribute),
    ROW(cuFuncSetAttribute, 9000, cuFuncSetAttribute),
    ROW(cuFuncSetCacheConfig, 3000, cuFuncSetCacheConfig),
    ROW(cuFuncGetName, 12030, cuFuncGetName),
    ROW(cuFuncGetModule, 11000, cuFuncGetModule),
    ROW(cuFuncGetParamInfo, 12040, cuFuncGetParamInfo),
    ROW(cuFuncIsLoaded, 12040, cuFuncIsLoaded),
    ROW(cuFuncLoad, 12040, cuFuncLoad),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000,
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
    ROW(cuOccupancyMaxPotentialBlockSize, 6050, cuOccupancyMaxPotentialBlockSize),
    ROW(cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, cuOccupancyMaxPotentialBlockSizeWithFlags),
    ROW(cuOccupancyAvailableDynamicSMemPerBlock, 10020, cuOccupancyAvailableDynamicSMemPerBlock),
    ROW(cuMemGetInfo, 3020, cuMemGetInfo_v2),
    ROW(cuMemAlloc, 3020, cuMemAlloc_v2),
    ROW(cuMemAllocPitch, 3020, cuMemAllocPitch_v2),
    ROW(cuMemAllocManaged, 6000, cuMemAllocManaged),
    ROW(cuMemFree, 3020, cuMemFree_v2),
    ROW(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2),
    ROW(cuMemAllocHost, 3020, cuMemAllocHost_v2),
    ROW(cuMemHostAlloc, 2020, cuMemHostAlloc),
    ROW(cuMemFreeHost, 2000, cuMemFreeHost),
    ROW(cuMemHostRegister, 4000, cuMemHostRegister),
    ROW(cuMemHostRegister, 6050, cuMemHostRegister_v2),
    ROW(cuMemHostUnregister, 4000, cuMemHostUnregister),
    ROW(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2),
    ROW(cuMemHostGetFlags, 2030, cuMemHostGetFlags),
    ROW(cuPointerGetAttribute, 4000, cuPointerGetAttribute),
    ROW(cuPointerGetAttributes, 7000, cuPointerGetAttributes),
    ROW(cuStreamCreate, 2000, cuStreamCreate),
    ROW(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority),
    ROW(cuStreamSetAttribute, 11000, cuStreamSetAttribute),
    ROW_PER_THREAD(cuStreamSetAttribute, 11000, _ptsz, cuStreamSetAttribute_ptsz),
    ROW(cuStreamGetAttribute, 11000, cuStreamGetAttribute),
    ROW_PER_THREAD(cuStreamGetAttribute, 11000, _ptsz, cuStreamGetAttribute_ptsz),
    ROW(cuStreamCopyAttributes, 11000, cuStreamCopyAttributes),
    ROW_PER_THREAD(cuStreamCopyAttributes, 11000, _ptsz, cuStreamCopyAttributes_ptsz),
    ROW(cuStreamDestroy, 4000, cuStreamDestroy_v2),
    ROW(cuDeviceGetDevResource, 12040, cuDeviceGetDevResource),
    ROW(cuCtxGetDevResource, 12040, cuCtxGetDevResource),
    ROW(cuGreenCtxGetDevResource, 12040, cuGreenCtxGetDevResource),
    ROW(cuDevSmResourceSplitByCount, 12040, cuDevSmResourceSplitByCount),
    ROW(cuDevResourceGenerateDesc, 12040, cuDevResourceGenerateDesc),
    ROW(cuGreenCtxCreate, 12040, cuGreenCtxCreate),
    ROW(cuGreenCtxDestroy, 12040, cuGreenCtxDestroy),
    ROW(cuGreenCtxStreamCreate, 12050, cuGreenCtxStreamCreate),
    ROW(cuStreamGetGreenCtx, 12040, cuStreamGetGreenCtx),
    ROW(cuEventCreate, 2000, cuEventCreate),
    ROW(cuEventDestroy, 4000, cuEventDestroy_v2),
    ROW(cuEventQuery, 2000, cuEventQuery),
    ROW(cuEventSynchronize, 2000, cuEventSynchronize),
    ROW(cuEventElapsedTime, 2000, cuEventElapsedTime),
    ROW(cuEventElapsedTime, 12080, cuEventElapsedTime_v2),
    ROW(cuStreamWaitValue32, 8000, cuStreamWaitValue32),
    ROW(cuStreamWaitValue64, 9000, cuStreamWaitValue64),
    ROW(cuStreamWriteValue32, 8000, cuStreamWriteValue32),
    ROW(cuStreamWriteValue64, 9000, cuStreamWriteValue64),
    ROW(cuStreamBatchMemOp, 8000, cuStreamBatchMemOp),
    ROW(cuGraphCreate, 10000, cuGraphCreate),
    ROW(cuGraphDestroy, 10000, cuGraphDestroy),
    ROW(cuGraphClone, 10000, cuGraphClone),
    ROW(cuGraphNodeFindInClone, 10000, cuGraphNodeFindInClone),
    ROW(cuGraphGetNodes, 10000, cuGraphGetNodes),
    ROW(cuGraphGetRootNodes, 10000, cuGraphGetRootNodes),
    ROW(cuGraphGetEdges, 10000, cuGraphGetEdges),
    ROW(cuGraphGetEdges, 12030, cuGraphGetEdges_v2),
    ROW(cuGraphNodeGetDependencies, 10000, cuGraphNodeGetDependencies),
    ROW(cuGraphNodeGetDependencies, 12030, cuGraphNodeGetDependencies_v2),
    ROW(cuGraphNodeGetDependentNodes, 10000, cuGraphNodeGetDependentNodes),
    ROW(cuGraphNodeGetDependentNodes, 12030, cuGraphNodeGetDependentNodes_v2),
    ROW(cuGraphAddDependencies, 10000, cuGraphAddDependencies),
    ROW(cuGraphAddDependencies, 12030, cuGraphAddDependencies_v2),
    ROW(cuGraphRemoveDependencies, 10000, cuGraphRemoveDependencies),
    ROW(cuGraphRemoveDependencies, 12030, cuGraphRemoveDependencies_v2),
    ROW(cuGraphNodeGetType, 10000, cuGraphNodeGetType),
    ROW(cuGraphDestroyNode, 10000, cuGraphDestroyNode),
    ROW(cuGraphAddNode, 12020, cuGraphAddNode),
    ROW(cuGraphAddNode, 12030, cuGraphAddNode_v2),
    ROW(cuGraphNodeSetParams, 12020, cuGraphNodeSetParams),
    ROW(cuGraphAddKernelNode, 10000, cuGraphAddKernelNode),
    ROW(cuGraphAddKernelNode, 12000, cuGraphAddKernelNode_v2),
    ROW(cuGraphKernelNodeGetParams, 10000, cuGraphKernelNodeGetParams),
    ROW(cuGraphKernelNodeGetParams, 12000, cuGraphKernelNodeGetParams_v2),
    ROW(cuGraphKernelNodeSetParams, 10000, cuGraphKernelNodeSetParams),
    ROW(cuGraphKernelNodeSetParams, 12000, cuGraphKernelNodeSetParams_v2),
    ROW(cuGraphKernelNodeGetAttribute, 11000, cuGraphKernelNodeGetAttribute),
    ROW(cuGraphKernelNodeSetAttribute, 11000, cuGraphKernelNodeSetAttribute),
    ROW(cuGraphKernelNodeCopyAttributes, 11000, cuGraphKernelNodeCopyAttributes),
    ROW(cuGraphAddMemcpyNode, 10000, cuGraphAddMemcpyNode),
    ROW(cuGraphMemcpyNodeGetParams, 10000, cuGraphMemcpyNodeGetParams),
    ROW(cuGraphMemcpyNodeSetParams, 10000, cuGraphMemcpyNodeSetParams),
    ROW(cuGraphAddMemsetNode, 10000, cuGraphAddMemsetNode),
    ROW(cuGraphMemsetNodeGetParams, 10000, cuGraphMemsetNodeGetParams),
    ROW(cuGraphMemsetNodeSetParams, 10000, cuGraphMemsetNodeSetParams),
    ROW(cuGraphAddHostNode, 10000, cuGraphAddHostNode),
    ROW(cuGraphHostNodeGetParams, 10000, cuGraphHostNodeGetParams),
    ROW(cuGraphHostNodeSetParams, 10000, cuGraphHostNodeSetParams),
    ROW(cuGraphAddEmptyNode, 10000, cuGraphAddEmptyNode),
    ROW(cuGraphAddChildGraphNode, 10000, cuGraphAddChildGraphNode),
    ROW(cuGraphChildGraphNodeGetGraph, 10000, cuGraphChildGraphNodeGetGraph),
    ROW(cuGraphAddEventRecordNode, 11010, cuGraphAddEventRecordNode),
    ROW(cuGraphEventRecordNodeGetEvent, 11010, cuGraphEventRecordNodeGetEvent),
    ROW(cuGraphEventRecordNodeSetEvent, 11010, cuGraphEventRecordNodeSetEvent),
    ROW(cuGraphAddEventWaitNode, 11010, cuGraphAddEventWaitNode),
    ROW(cuGraphEventWaitNodeGetEvent, 11010, cuGraphEventWaitNodeGetEvent),
    ROW(cuGraphEventWaitNodeSetEvent, 11010, cuGraphEventWaitNodeSetEvent),
    ROW(cuGraphAddBatchMemOpNode, 11070, cuGraphAddBatchMemOpNode),
    ROW(cuGraphBatchMemOpNodeGetParams, 11070, cuGraphBatchMemOpNodeGetParams),
    ROW(cuGraphBatchMemOpNodeSetParams, 11070, cuGraphBatchMemOpNodeSetParams),
    ROW(cuGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode),
    ROW(cuGraphMemAllocNodeGetParams, 11040, cuGraphMemAllocNodeGetParams),
    ROW(cuGraphAddMemFreeNode, 11040, cuGraphAddMemFreeNode),
    ROW(cuGraphMemFreeNodeGetParams, 11040, cuGraphMemFreeNodeGetParams),
    ROW(cuGraphInstantiate, 10000, cuGraphInstantiate),
    ROW(cuGraphInstantiate, 11000, cuGraphInstantiate_v2),
    ROW(cuGraphInstantiate, 12000, cuGraphInstantiateWithFlags),
    ROW(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags),
    ROW(cuGraphExecDestroy, 10000, cuGraphExecDestroy),
    ROW(cuGraphExecGetFlags, 12000, cuGraphExecGetFlags),
    ROW(cuGraphExecUpdate, 10020, cuGraphExecUpdate),
    ROW(cuGraphExecUpdate, 12000, cuGraphExecUpdate_v2),
    ROW(cuGraphExecNodeSetParams, 12020, cuGraphExecNodeSetParams),
    ROW(cuGraphExecKernelNodeSetParams, 10010, cuGraphExecKernelNodeSetParams),
    ROW(cuGraphExecKernelNodeSetParams, 12000, cuGraphExecKernelNodeSetParams_v2),
    ROW(cuGraphExecMemcpyNodeSetParams, 10020, cuGraphExecMemcpyNodeSetParams),
    ROW(cuGraphExecMemsetNodeSetParams, 10020, cuGraphExecMemsetNodeSetParams),
    ROW(cuGraphExecHostNodeSetParams, 10020, cuGraphExecHostNodeSetParams),
    ROW(cuGraphExecChildGraphNodeSetParams, 11010, cuGraphExecChildGraphNodeSetParams),
    ROW(cuGraphExecEventRecordNodeSetEvent, 11010, cuGraphExecEventRecordNodeSetEvent),
    ROW(cuGraphExecEventWaitNodeSetEvent, 11010, cuGraphExecEventWaitNodeSetEvent),
    ROW(cuGraphExecBatchMemOpNodeSetParams, 11070, cuGraphExecBatchMemOpNodeSetParams),
    ROW(cuGraphNodeSetEnabled, 11060, cuGraphNodeSetEnabled),
    ROW(cuGraphNodeGetEnabled, 11060, cuGraphNodeGetEnabled),
    ROW(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode),
    ROW(cuMemAddressReserve, 10020, cuMemAddressReserve),
    ROW(cuMemAddressFree, 10020, cuMemAddressFree),
    ROW(cuMemCreate, 10020, cuMemCreate),
    ROW(cuMemRelease, 10020, cuMemRelease),
    ROW(cuMemMap, 10020, cuMemMap),
    ROW(cuMemUnmap, 10020, cuMemUnmap),
    ROW(cuMemSetAccess, 10020, cuMemSetAccess),
    ROW(cuMemGetAccess, 10020, cuMemGetAccess),
    ROW(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity),
    ROW(cuMemGetAllocationPropertiesFromHandle, 10020, cuMemGetAllocationPropertiesFromHandle),
    ROW(cuMemRetainAllocationHandle, 11000, cuMemRetainAllocationHandle),
    ROW(cuProfilerStart, 4000, cuProfilerStart),
    ROW(cuProfilerStop, 4000, cuProfilerStop),
    ROW(cuGetExportTable, 3000, cuGetExportTable),
    ROW(cuGetProcAddress, 11030, cuGetProcAddress),
    ROW(cuGetProcAddress, 12000, cuGetProcAddress_v2),
    ROW(cuMemcpy, 4000, cuMemcpy),
    ROW_PER_THREAD(cuMemcpy, 7000, _ptds, cuMemcpy_ptds),
    ROW(cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2),
    ROW_PER_THREAD(cuMemcpyHtoD, 7000, _ptds, cuMemcpyHtoD_v2_ptds),
    ROW(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2),
    ROW_PER_THREAD(cuMemcpyDtoH, 7000, _ptds, cuMemcpyDtoH_v2_ptds),
    ROW(cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2),
    ROW_PER_THREAD(cuMemcpyDtoD, 7000, _ptds, cuMemcpyDtoD_v2_ptds),
    ROW(cuMemcpy2D, 3020, cuMemcpy2D_v2),
    ROW_PER_THREAD(cuMemcpy2D, 7000, _ptds, cuMemcpy2D_v2_ptds),
    ROW(cuMemcpy2DUnaligned, 3020, cuMemcpy2DUnaligned_v2),
    ROW_PER_THREAD(cuMemcpy2DUnaligned, 7000, _ptds, cuMemcpy2DUnaligned_v2_ptds),
    ROW(cuMemsetD8, 3020, cuMemsetD8_v2),
    ROW_PER_THREAD(cuMemsetD8, 7000, _ptds, cuMemsetD8_v2_ptds),
    ROW(cuMemsetD16, 3020, cuMemsetD16_v2),
    ROW_PER_THREAD(cuMemsetD16, 7000, _ptds, cuMemsetD16_v2_ptds),
    ROW(cuMemsetD32, 3020, cuMemsetD32_v2),
    ROW_PER_THREAD(cuMemsetD32, 7000, _ptds, cuMemsetD32_v2_ptds),
    ROW(cuMemsetD2D8, 3020, cuMemsetD2D8_v2),
    ROW_PER_THREAD(cuMemsetD2D8, 7000, _ptds, cuMemsetD2D8_v2_ptds),
    ROW(cuMemsetD2D16, 3020, cuMemsetD2D16_v2),
    ROW_PER_THREAD(cuMemsetD2D16, 7000, _ptds, cuMemsetD2D16_v2_ptds),
    ROW(cuMemsetD2D32, 3020, cuMemsetD2D32_v2),
    ROW_PER_THREAD(cuMemsetD2D32, 7000, _ptds, cuMemsetD2D32_v2_ptds),
    ROW(cuMemcpy3D, 3020, cuMemcpy3D_v2),
    ROW_PER_THREAD(cuMemcpy3D, 7000, _ptds, cuMemcpy3D_v2_ptds),
    ROW(cuMemcpy3DAsync, 3020, cuMemcpy3DAsync_v2),
    ROW_PER_THREAD(cuMemcpy3DAsync, 7000, _ptsz, cuMemcpy3DAsync_v2_ptsz),
    ROW(cuMemcpyAsync, 4000, cuMemcpyAsync),
    ROW_PER_THREAD(cuMemcpyAsync, 7000, _ptsz, cuMemcpyAsync_ptsz),
    ROW(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2),
    ROW_PER_THREAD(cuMemcpyHtoDAsync, 7000, _ptsz, cuMemcpyHtoDAsync_v2_ptsz),
    ROW(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2),
    ROW_PER_THREAD(cuMemcpyDtoHAsync, 7000, _ptsz, cuMemcpyDtoHAsync_v2_ptsz),
    ROW(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2),
    ROW_PER_THREAD(cuMemcpyDtoDAsync, 7000, _ptsz, cuMemcpyDtoDAsync_v2_ptsz),
    ROW(cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2),
    ROW_PER_THREAD(cuMemcpy2DAsync, 7000, _ptsz, cuMemcpy2DAsync_v2_ptsz),
    ROW(cuMemsetD8Async, 3020, cuMemsetD8Async),
    ROW_PER_THREAD(cuMemsetD8Async, 7000, _ptsz, cuMemsetD8Async_ptsz),
    ROW(cuMemsetD16Async, 3020, cuMemsetD16Async),
    ROW_PER_THREAD(cuMemsetD16Async, 7000, _ptsz, cuMemsetD16Async_ptsz),
    ROW(cuMemsetD32Async, 3020, cuMemsetD32Async),
    ROW_PER_THREAD(cuMemsetD32Async, 7000, _ptsz, cuMemsetD32Async_ptsz),
    ROW(cuMemsetD2D8Async, 3020, cuMemsetD2D8Async),
    ROW_PER_THREAD(cuMemsetD2D8Async, 7000, _ptsz, cuMemsetD2D8Async_ptsz),
    ROW(cuMemsetD2D16Async, 3020, cuMemsetD2D16Async),
    ROW_PER_THREAD(cuMemsetD2D16Async, 7000, _ptsz, cuMemsetD2D16Async_ptsz),
    ROW(cuMemsetD2D32Async, 3020, cuMemsetD2D32Async),
    ROW_PER_THREAD(cuMemsetD2D32Async, 7000, _ptsz, cuMemsetD2D32Async_ptsz),
    ROW(cuMemAllocAsync, 11020, cuMemAllocAsync),
    ROW_PER_THREAD(cuMemAllocAsync, 11020, _ptsz, cuMemAllocAsync_ptsz),
    ROW(cuMemFreeAsync, 11020, cuMemFreeAsync),
    ROW_PER_THREAD(cuMemFreeAsync, 11020, _ptsz, cuMemFreeAsync_ptsz),
    ROW(cuStreamGetPriority, 5050, cuStreamGetPriority),
    ROW_PER_THREAD(cuStreamGetPriority, 7000, _ptsz, cuStreamGetPriority_ptsz),
    ROW(cuStreamGetId, 12000, cuStreamGetId),
    ROW_PER_THREAD(cuStreamGetId, 12000, _ptsz, cuStreamGetId_ptsz),
    ROW(cuStreamGetFlags, 5050, cuStreamGetFlags),
    ROW_PER_THREAD(cuStreamGetFlags, 7000, _ptsz, cuStreamGetFlags_ptsz),
    ROW(cuStreamGetDevice, 12080, cuStreamGetDevice),
    ROW_PER_THREAD(cuStreamGetDevice, 12080, _ptsz, cuStreamGetDevice_ptsz),
    ROW(cuStreamGetCtx, 9020, cuStreamGetCtx),
    ROW_PER_THREAD(cuStreamGetCtx, 9020, _ptsz, cuStreamGetCtx_ptsz),
    ROW(cuStreamWaitEvent, 3020, cuStreamWaitEvent),
    ROW_PER_THREAD(cuStreamWaitEvent, 7000, _ptsz, cuStreamWaitEvent_ptsz),
    ROW(cuStreamAddCallback, 5000, cuStreamAddCallback),
    ROW_PER_THREAD(cuStreamAddCallback, 7000, _ptsz, cuStreamAddCallback_ptsz),
    ROW(cuStreamQuery, 2000, cuStreamQuery),
    ROW_PER_THREAD(cuStreamQuery, 7000, _ptsz, cuStreamQuery_ptsz),
    ROW(cuStreamSynchronize, 2000, cuStreamSynchronize),
    ROW_PER_THREAD(cuStreamSynchronize, 7000, _ptsz, cuStreamSynchronize_ptsz),
    ROW(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2),
    ROW_PER_THREAD(cuStreamBeginCapture, 10010, _ptsz, cuStreamBeginCapture_v2_ptsz),
    ROW(cuStreamEndCapture, 10000, cuStreamEndCapture),
    ROW_PER_THREAD(cuStreamEndCapture, 10000, _ptsz, cuStreamEndCapture_ptsz),
    ROW(cuStreamIsCapturing, 10000, cuStreamIsCapturing),
    ROW_PER_THREAD(cuStreamIsCapturing, 10000, _ptsz, cuStreamIsCapturing_ptsz),
    ROW(cuStreamBeginCaptureToGraph, 12030, cuStreamBeginCaptureToGraph),
    ROW_PER_THREAD(cuStreamBeginCaptureToGraph, 12030, _ptsz, cuStreamBeginCaptureToGraph_ptsz),
    ROW(cuStreamGetCaptureInfo, 10010, cuStreamGetCaptureInfo),
    ROW_PER_THREAD(cuStreamGetCaptureInfo, 10010, _ptsz, cuStreamGetCaptureInfo_ptsz),
    ROW(cuStreamGetCaptureInfo, 11030, cuStreamGetCaptureInfo_v2),
    ROW_PER_THREAD(cuStreamGetCaptureInfo, 11030, _ptsz, cuStreamGetCaptureInfo_v2_ptsz),
    ROW(cuStreamGetCaptureInfo, 12030, cuStreamGetCaptureInfo_v3),
    ROW_PER_THREAD(cuStreamGetCaptureInfo, 12030, _ptsz, cuStreamGetCaptureInfo_v3_ptsz),
    ROW(cuStreamUpdateCaptureDependencies, 11030, cuStreamUpdateCaptureDependencies),
    ROW_PER_THREAD(cuStreamUpdateCaptureDependencies, 11030, _ptsz, cuStreamUpdateCaptureDependencies_ptsz),
    ROW(cuStreamUpdateCaptureDependencies, 12030, cuStreamUpdateCaptureDependencies_v2),
    ROW_PER_THREAD(cuStreamUpdateCaptureDependencies, 12030, _ptsz, cuStreamUpdateCaptureDependencies_v2_ptsz),
    ROW(cuGraphInstantiateWithParams, 12000, cuGraphInstantiateWithParams),
    ROW_PER_THREAD(cuGraphInstantiateWithParams, 12000, _ptsz, cuGraphInstantiateWithParams_ptsz),
    ROW(cuGraphUpload, 11010, cuGraphUpload),
    ROW_PER_THREAD(cuGraphUpload, 11010, _ptsz, cuGraphUpload_ptsz),
    ROW(cuGraphLaunch, 10000, cuGraphLaunch),
    ROW_PER_THREAD(cuGraphLaunch, 10000, _ptsz, cuGraphLaunch_ptsz),
    ROW(cuStreamWaitValue32, 11070, cuStreamWaitValue32_v2),
    ROW_PER_THREAD(cuStreamWaitValue32, 11070, _ptsz, cuStreamWaitValue32_v2_ptsz),
    ROW(cuStreamWaitValue64, 11070, cuStreamWaitValue64_v2),
    ROW_PER_THREAD(cuStreamWaitValue64, 11070, _ptsz, cuStreamWaitValue64_v2_ptsz),
    ROW(cuStreamWriteValue32, 11070, cuStreamWriteValue32_v2),
    ROW_PER_THREAD(cuStreamWriteValue32, 11070, _ptsz, cuStreamWriteValue32_v2_ptsz),
    ROW(cuStreamWriteValue64, 11070, cuStreamWriteValue64_v2),
    ROW_PER_THREAD(cuStreamWriteValue64, 11070, _ptsz, cuStreamWriteValue64_v2_ptsz),
    ROW(cuStreamBatchMemOp, 11070, cuStreamBatchMemOp_v2),
    ROW_PER_THREAD(cuStreamBatchMemOp, 11070, _ptsz, cuStreamBatchMemOp_v2_ptsz),
    ROW(cuEventRecord, 2000, cuEventRecord),
    ROW_PER_THREAD(cuEventRecord, 7000, _ptsz, cuEventRecord_ptsz),
    ROW(cuEventRecordWithFlags, 11010, cuEventRecordWithFlags),
    ROW_PER_THREAD(cuEventRecordWithFlags, 11010, _ptsz, cuEventRecordWithFlags_ptsz),
    ROW(cuLaunchKernel, 4000, cuLaunchKernel),
    ROW_PER_THREAD(cuLaunchKernel, 7000, _ptsz, cuLaunchKernel_ptsz),
    ROW(cuLaunchKernelEx, 11060, cuLaunchKernelEx),
    ROW_PER_THREAD(cuLaunchKernelEx, 11060, _ptsz, cuLaunchKernelEx_ptsz),
    ROW(cuLaunchCooperativeKernel, 9000, cuLaunchCooperativeKernel),
    ROW_PER_THREAD(cuLaunchCooperativeKernel, 9000, _ptsz, cuLaunchCooperativeKernel_ptsz),
    ROW(cuLaunchHostFunc, 10000, cuLaunchHostFunc),
    ROW_PER_THREAD(cuLaunchHostFunc, 10000, _ptsz, cuLaunchHostFunc_ptsz),
};
#pragma GCC diagnostic pop
#undef ROW
#undef ROW_PER_THREAD

struct Answer {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

Answer find(const char* symbol, int version, bool per_thread) {
  const EntryPoint* best = nullptr;
  Answer answer;
  for (const EntryPoint& entry : kEntryPoints) {
    if (std::strcmp(entry.exported, symbol) == 0 && std::strcmp(entry.name, symbol) != 0) {
      return {entry.function, CU_GET_PROC_ADDRESS_SUCCESS};  // requested by its full name
    }
    if (std::strcmp(entry.name, symbol) != 0) continue;
    if (entry.version > version) {
      if (best == nullptr) answer.status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
      continue;
    }
    // A per-thread variant is preferred if requested, and never given otherwise.
    if (entry.per_thread && !per_thread) continue;
    if (best == nullptr || entry.per_thread > best->per_thread ||
        (entry.per_thread == best->per_thread && entry.version > best->version)) {
      best = &entry;
    }
  }
  if (best != nullptr) answer = {best->function, CU_GET_PROC_ADDRESS_SUCCESS};
  return answer;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuProfilerStart(void) {
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuProfilerStop(void) {
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Answer answer = find(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  *function = answer.function;
  if (status != nullptr) *status = answer.status;
  return answer.function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // extern "C"
