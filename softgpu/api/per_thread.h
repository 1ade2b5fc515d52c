// The `_ptds` and `_ptsz` variants: the same functions, but stream 0 is the per-thread default stream.
#pragma once

#include <cuda.h>

#include "softgpu/api/older.h"

// One row for each: exported name without suffix, suffix, types of the parameters, names for them.
// clang-format off
#define SOFTGPU_PER_THREAD_FUNCTIONS(ROW) \
  ROW(cuMemcpy, _ptds, (CUdeviceptr a, CUdeviceptr b, size_t c), (a, b, c)) \
  ROW(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr a, const void* b, size_t c), (a, b, c)) \
  ROW(cuMemcpyDtoH_v2, _ptds, (void* a, CUdeviceptr b, size_t c), (a, b, c)) \
  ROW(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr a, CUdeviceptr b, size_t c), (a, b, c)) \
  ROW(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* a), (a)) \
  ROW(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* a), (a)) \
  ROW(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* a), (a)) \
  ROW(cuMemsetD8_v2, _ptds, (CUdeviceptr a, unsigned char b, size_t c), (a, b, c)) \
  ROW(cuMemsetD16_v2, _ptds, (CUdeviceptr a, unsigned short b, size_t c), (a, b, c)) \
  ROW(cuMemsetD32_v2, _ptds, (CUdeviceptr a, unsigned int b, size_t c), (a, b, c)) \
  ROW(cuMemsetD2D8_v2, _ptds, (CUdeviceptr a, size_t b, unsigned char c, size_t d, size_t e), (a, b, c, d, e)) \
  ROW(cuMemsetD2D16_v2, _ptds, (CUdeviceptr a, size_t b, unsigned short c, size_t d, size_t e), (a, b, c, d, e)) \
  ROW(cuMemsetD2D32_v2, _ptds, (CUdeviceptr a, size_t b, unsigned int c, size_t d, size_t e), (a, b, c, d, e)) \
  ROW(cuMemcpyPeer, _ptds, (CUdeviceptr a, CUcontext b, CUdeviceptr c, CUcontext d, size_t e), (a, b, c, d, e)) \
  ROW(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* a), (a)) \
  ROW(cuMemcpyPeerAsync, _ptsz, (CUdeviceptr a, CUcontext b, CUdeviceptr c, CUcontext d, size_t e, CUstream f), (a, b, c, d, e, f)) \
  ROW(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER* a, CUstream b), (a, b)) \
  ROW(cuMemcpyAsync, _ptsz, (CUdeviceptr a, CUdeviceptr b, size_t c, CUstream d), (a, b, c, d)) \
  ROW(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr a, const void* b, size_t c, CUstream d), (a, b, c, d)) \
  ROW(cuMemcpyDtoHAsync_v2, _ptsz, (void* a, CUdeviceptr b, size_t c, CUstream d), (a, b, c, d)) \
  ROW(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr a, CUdeviceptr b, size_t c, CUstream d), (a, b, c, d)) \
  ROW(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* a, CUstream b), (a, b)) \
  ROW(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* a, CUstream b), (a, b)) \
  ROW(cuMemsetD8Async, _ptsz, (CUdeviceptr a, unsigned char b, size_t c, CUstream d), (a, b, c, d)) \
  ROW(cuMemsetD16Async, _ptsz, (CUdeviceptr a, unsigned short b, size_t c, CUstream d), (a, b, c, d)) \
  ROW(cuMemsetD32Async, _ptsz, (CUdeviceptr a, unsigned int b, size_t c, CUstream d), (a, b, c, d)) \
  ROW(cuMemsetD2D8Async, _ptsz, (CUdeviceptr a, size_t b, unsigned char c, size_t d, size_t e, CUstream f), (a, b, c, d, e, f)) \
  ROW(cuMemsetD2D16Async, _ptsz, (CUdeviceptr a, size_t b, unsigned short c, size_t d, size_t e, CUstream f), (a, b, c, d, e, f)) \
  ROW(cuMemsetD2D32Async, _ptsz, (CUdeviceptr a, size_t b, unsigned int c, size_t d, size_t e, CUstream f), (a, b, c, d, e, f)) \
  ROW(cuMemAllocAsync, _ptsz, (CUdeviceptr* a, size_t b, CUstream c), (a, b, c)) \
  ROW(cuMemAllocFromPoolAsync, _ptsz, (CUdeviceptr* a, size_t b, CUmemoryPool c, CUstream d), (a, b, c, d)) \
  ROW(cuMemFreeAsync, _ptsz, (CUdeviceptr a, CUstream b), (a, b)) \
  ROW(cuStreamGetPriority, _ptsz, (CUstream a, int* b), (a, b)) \
  ROW(cuStreamSetAttribute, _ptsz, (CUstream a, CUstreamAttrID b, const CUstreamAttrValue* c), (a, b, c)) \
  ROW(cuStreamGetAttribute, _ptsz, (CUstream a, CUstreamAttrID b, CUstreamAttrValue* c), (a, b, c)) \
  ROW(cuStreamCopyAttributes, _ptsz, (CUstream a, CUstream b), (a, b)) \
  ROW(cuStreamGetId, _ptsz, (CUstream a, unsigned long long* b), (a, b)) \
  ROW(cuStreamGetFlags, _ptsz, (CUstream a, unsigned int* b), (a, b)) \
  ROW(cuStreamGetDevice, _ptsz, (CUstream a, CUdevice* b), (a, b)) \
  ROW(cuStreamGetCtx, _ptsz, (CUstream a, CUcontext* b), (a, b)) \
  ROW(cuStreamWaitEvent, _ptsz, (CUstream a, CUevent b, unsigned int c), (a, b, c)) \
  ROW(cuStreamAddCallback, _ptsz, (CUstream a, CUstreamCallback b, void* c, unsigned int d), (a, b, c, d)) \
  ROW(cuStreamQuery, _ptsz, (CUstream a), (a)) \
  ROW(cuStreamSynchronize, _ptsz, (CUstream a), (a)) \
  ROW(cuStreamBeginCapture_v2, _ptsz, (CUstream a, CUstreamCaptureMode b), (a, b)) \
  ROW(cuStreamEndCapture, _ptsz, (CUstream a, CUgraph* b), (a, b)) \
  ROW(cuStreamIsCapturing, _ptsz, (CUstream a, CUstreamCaptureStatus* b), (a, b)) \
  ROW(cuStreamBeginCaptureToGraph, _ptsz, (CUstream a, CUgraph b, const CUgraphNode* c, const CUgraphEdgeData* d, size_t e, CUstreamCaptureMode f), (a, b, c, d, e, f)) \
  ROW(cuStreamGetCaptureInfo, _ptsz, (CUstream a, CUstreamCaptureStatus* b, cuuint64_t* c), (a, b, c)) \
  ROW(cuStreamGetCaptureInfo_v2, _ptsz, (CUstream a, CUstreamCaptureStatus* b, cuuint64_t* c, CUgraph* d, const CUgraphNode** e, size_t* f), (a, b, c, d, e, f)) \
  ROW(cuStreamGetCaptureInfo_v3, _ptsz, (CUstream a, CUstreamCaptureStatus* b, cuuint64_t* c, CUgraph* d, const CUgraphNode** e, const CUgraphEdgeData** f, size_t* g), (a, b, c, d, e, f, g)) \
  ROW(cuStreamUpdateCaptureDependencies, _ptsz, (CUstream a, CUgraphNode* b, size_t c, unsigned int d), (a, b, c, d)) \
  ROW(cuStreamUpdateCaptureDependencies_v2, _ptsz, (CUstream a, CUgraphNode* b, const CUgraphEdgeData* c, size_t d, unsigned int e), (a, b, c, d, e)) \
  ROW(cuGraphInstantiateWithParams, _ptsz, (CUgraphExec* a, CUgraph b, CUDA_GRAPH_INSTANTIATE_PARAMS* c), (a, b, c)) \
  ROW(cuGraphUpload, _ptsz, (CUgraphExec a, CUstream b), (a, b)) \
  ROW(cuGraphLaunch, _ptsz, (CUgraphExec a, CUstream b), (a, b)) \
  ROW(cuStreamWaitValue32_v2, _ptsz, (CUstream a, CUdeviceptr b, cuuint32_t c, unsigned int d), (a, b, c, d)) \
  ROW(cuStreamWaitValue64_v2, _ptsz, (CUstream a, CUdeviceptr b, cuuint64_t c, unsigned int d), (a, b, c, d)) \
  ROW(cuStreamWriteValue32_v2, _ptsz, (CUstream a, CUdeviceptr b, cuuint32_t c, unsigned int d), (a, b, c, d)) \
  ROW(cuStreamWriteValue64_v2, _ptsz, (CUstream a, CUdeviceptr b, cuuint64_t c, unsigned int d), (a, b, c, d)) \
  ROW(cuStreamBatchMemOp_v2, _ptsz, (CUstream a, unsigned int b, CUstreamBatchMemOpParams* c, unsigned int d), (a, b, c, d)) \
  ROW(cuEventRecord, _ptsz, (CUevent a, CUstream b), (a, b)) \
  ROW(cuEventRecordWithFlags, _ptsz, (CUevent a, CUstream b, unsigned int c), (a, b, c)) \
  ROW(cuLaunchKernel, _ptsz, (CUfunction a, unsigned int b, unsigned int c, unsigned int d, unsigned int e, unsigned int f, unsigned int g, unsigned int h, CUstream i, void** j, void** k), (a, b, c, d, e, f, g, h, i, j, k)) \
  ROW(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig* a, CUfunction b, void** c, void** d), (a, b, c, d)) \
  ROW(cuLaunchCooperativeKernel, _ptsz, (CUfunction a, unsigned int b, unsigned int c, unsigned int d, unsigned int e, unsigned int f, unsigned int g, unsigned int h, CUstream i, void** j), (a, b, c, d, e, f, g, h, i, j)) \
  ROW(cuLaunchHostFunc, _ptsz, (CUstream a, CUhostFn b, void* c), (a, b, c))
// clang-format on

#define SOFTGPU_DECLARE(name, suffix, parameters, arguments) extern "C" decltype(name) name##suffix;
SOFTGPU_PER_THREAD_FUNCTIONS(SOFTGPU_DECLARE)
#undef SOFTGPU_DECLARE
