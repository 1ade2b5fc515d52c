// The driver as the runtime sees it. It is opened by name at the first use, and every function comes from
// cuGetProcAddress, which is the usual way. So a preloaded library that interposes there sees all calls of the runtime.
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>

// clang-format off
#define SOFTGPU_CUDART_FUNCTIONS(ROW) \
  ROW(cuInit) ROW(cuDriverGetVersion) ROW(cuDeviceGet) ROW(cuDeviceGetCount) ROW(cuDeviceGetName) ROW(cuDeviceGetUuid) \
  ROW(cuDeviceTotalMem) ROW(cuDeviceGetAttribute) ROW(cuDeviceGetPCIBusId) ROW(cuDeviceGetByPCIBusId) ROW(cuDeviceCanAccessPeer) \
  ROW(cuDeviceGetP2PAttribute) ROW(cuCtxGetDevice) ROW(cuCtxEnablePeerAccess) ROW(cuCtxDisablePeerAccess) \
  ROW(cuMemcpyPeer) ROW(cuMemcpyPeerAsync) \
  ROW(cuDevicePrimaryCtxRetain) ROW(cuDevicePrimaryCtxReset) ROW(cuDevicePrimaryCtxGetState) \
  ROW(cuDevicePrimaryCtxSetFlags) ROW(cuCtxGetCurrent) ROW(cuCtxSetCurrent) ROW(cuCtxSynchronize) \
  ROW(cuCtxGetStreamPriorityRange) ROW(cuCtxSetLimit) ROW(cuCtxGetLimit) \
  ROW(cuCtxGetFlags) ROW(cuCtxGetCacheConfig) ROW(cuCtxSetCacheConfig) ROW(cuGetProcAddress) \
  ROW(cuLibraryLoadData) ROW(cuLibraryGetKernel) ROW(cuLibraryGetGlobal) \
  ROW(cuKernelGetFunction) ROW(cuKernelGetAttribute) ROW(cuKernelSetAttribute) ROW(cuKernelSetCacheConfig) \
  ROW(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) ROW(cuOccupancyAvailableDynamicSMemPerBlock) \
  ROW(cuMemGetInfo) ROW(cuMemAlloc) ROW(cuMemAllocPitch) ROW(cuMemAllocManaged) ROW(cuMemFree) ROW(cuMemAllocAsync) \
  ROW(cuMemFreeAsync) ROW(cuMemHostAlloc) ROW(cuMemFreeHost) ROW(cuMemHostRegister) ROW(cuMemHostUnregister) \
  ROW(cuMemHostGetDevicePointer) ROW(cuMemHostGetFlags) ROW(cuPointerGetAttributes) \
  ROW(cuMemcpyAsync) ROW(cuMemcpyHtoD) ROW(cuMemcpyDtoH) ROW(cuMemcpyDtoD) ROW(cuMemcpyHtoDAsync) \
  ROW(cuMemcpyDtoHAsync) ROW(cuMemcpyDtoDAsync) ROW(cuMemcpy) ROW(cuMemcpy2D) ROW(cuMemcpy2DAsync) ROW(cuMemcpy3D) ROW(cuMemcpy3DAsync) \
  ROW(cuMemsetD8) ROW(cuMemsetD8Async) ROW(cuMemsetD2D8) ROW(cuMemsetD2D8Async) \
  ROW(cuStreamCreate) ROW(cuStreamCreateWithPriority) ROW(cuStreamDestroy) ROW(cuStreamSynchronize) \
  ROW(cuStreamQuery) ROW(cuStreamWaitEvent) ROW(cuStreamAddCallback) ROW(cuStreamGetPriority) ROW(cuStreamGetFlags) \
  ROW(cuStreamSetAttribute) ROW(cuStreamGetAttribute) \
  ROW(cuStreamCopyAttributes) ROW(cuStreamGetId) ROW(cuStreamIsCapturing) ROW(cuLaunchHostFunc) \
  ROW(cuEventCreate) ROW(cuEventDestroy) ROW(cuEventRecord) ROW(cuEventRecordWithFlags) ROW(cuEventQuery) \
  ROW(cuEventSynchronize) ROW(cuEventElapsedTime) \
  ROW(cuStreamBeginCapture) ROW(cuStreamBeginCaptureToGraph) ROW(cuStreamEndCapture) ROW(cuStreamGetCaptureInfo) \
  ROW(cuStreamUpdateCaptureDependencies) ROW(cuThreadExchangeStreamCaptureMode) \
  ROW(cuGraphCreate) ROW(cuGraphDestroy) ROW(cuGraphClone) ROW(cuGraphNodeFindInClone) ROW(cuGraphGetNodes) \
  ROW(cuGraphGetRootNodes) ROW(cuGraphNodeGetType) ROW(cuGraphAddDependencies) ROW(cuGraphDestroyNode) \
  ROW(cuGraphAddKernelNode) ROW(cuGraphKernelNodeSetParams) ROW(cuGraphAddMemcpyNode) ROW(cuGraphAddMemsetNode) \
  ROW(cuGraphAddHostNode) ROW(cuGraphAddChildGraphNode) ROW(cuGraphAddEmptyNode) ROW(cuGraphInstantiateWithFlags) \
  ROW(cuGraphInstantiateWithParams) ROW(cuGraphExecDestroy) ROW(cuGraphUpload) ROW(cuGraphLaunch) \
  ROW(cuGraphExecUpdate) ROW(cuGraphExecKernelNodeSetParams) ROW(cuGraphNodeSetEnabled) \
  ROW(cuLaunchKernel) ROW(cuLaunchKernelEx) ROW(cuLaunchCooperativeKernel) ROW(cuKernelGetName) ROW(cuProfilerStart) ROW(cuProfilerStop)
// clang-format on

namespace gpuctl::softgpu::cudart {

/// The names are those that a program would write; the types are those of cuda.h's current versions. nullptr: not
/// offered.
struct DriverFunctions {
#define SOFTGPU_MEMBER(name) decltype(&::name) p_##name = nullptr;
  SOFTGPU_CUDART_FUNCTIONS(SOFTGPU_MEMBER)
#undef SOFTGPU_MEMBER
  bool found = false;  ///< the driver was opened and has all of them
};

/// Any thread; opens the driver once.
const DriverFunctions& driver();

/// Opens and initialises the driver if need be. For functions that need no context.
CUresult begin();

/// The same, and makes sure that the calling thread has a current context (the primary one of its device if it has
/// none). Every function of the runtime that needs a context calls it first.
CUresult enter();

/// The device of the calling thread: the one of its current context, else the one it chose, at first 0.
int current_device();

/// Makes the primary context of a device current to the calling thread.
CUresult choose_device(int device);

/// The primary context of a device, made if there is none.
CUcontext primary_context(int device, CUresult* result);

/// Resets the primary context of the thread's device. Every thread for which it was current gets a new one at its next
/// call.
CUresult reset_device();

}  // namespace gpuctl::softgpu::cudart

/// `DRIVER(cuMemAlloc)(...)` calls the driver.
#define DRIVER(name) (gpuctl::softgpu::cudart::driver().p_##name)
