// cudaMalloc and friends, cudaMemcpy*, cudaMemset*.
#include <cuda_runtime_api.h>

#include "softgpu/cudart/driver.h"
#include "softgpu/cudart/error.h"
#include "softgpu/cudart/registration.h"

using namespace gpuctl::softgpu::cudart;

namespace {

CUdeviceptr device(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

/// Synchronous, in the legacy default stream.
CUresult copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const CUresult entered = enter();
  if (entered != CUDA_SUCCESS) return entered;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return DRIVER(cuMemcpyHtoD)(device(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return DRIVER(cuMemcpyDtoH)(to, device(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return DRIVER(cuMemcpyDtoD)(device(to), device(from), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return DRIVER(cuMemcpy)(device(to), device(from), bytes);
    default:
      return static_cast<CUresult>(cudaErrorInvalidMemcpyDirection);
  }
}

CUresult copy_async(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const CUresult entered = enter();
  if (entered != CUDA_SUCCESS) return entered;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return DRIVER(cuMemcpyHtoDAsync)(device(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return DRIVER(cuMemcpyDtoHAsync)(to, device(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return DRIVER(cuMemcpyDtoDAsync)(device(to), device(from), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return DRIVER(cuMemcpyAsync)(device(to), device(from), bytes, stream);
    default:
      return static_cast<CUresult>(cudaErrorInvalidMemcpyDirection);
  }
}

/// Runs `body` with the contexts of two devices.
template <class Body>
CUresult copy_peer(int to_device, int from_device, Body&& body) {
  CUresult result = enter();
  if (result != CUDA_SUCCESS) return result;
  const CUcontext to = primary_context(to_device, &result);
  if (result != CUDA_SUCCESS) return result;
  const CUcontext from = primary_context(from_device, &result);
  return result == CUDA_SUCCESS ? body(to, from) : result;
}

CUDA_MEMCPY2D describe_2d(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                          std::size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D result{};
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  result.srcMemoryType = kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED
                         : from_host               ? CU_MEMORYTYPE_HOST
                                                   : CU_MEMORYTYPE_DEVICE;
  result.dstMemoryType = kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED
                         : to_host                 ? CU_MEMORYTYPE_HOST
                                                   : CU_MEMORYTYPE_DEVICE;
  result.srcHost = from;
  result.srcDevice = device(from);
  result.srcPitch = from_pitch;
  result.dstHost = to;
  result.dstDevice = device(to);
  result.dstPitch = to_pitch;
  result.WidthInBytes = width;
  result.Height = height;
  return result;
}

/// Describes a copy of linear memory; there are no arrays.
CUDA_MEMCPY3D describe_3d(const cudaMemcpy3DParms& of) {
  CUDA_MEMCPY3D result{};
  const CUDA_MEMCPY2D flat =
      describe_2d(of.dstPtr.ptr, of.dstPtr.pitch, of.srcPtr.ptr, of.srcPtr.pitch, of.extent.width, 1, of.kind);
  const bool arrays = of.srcArray != nullptr || of.dstArray != nullptr;
  result.srcMemoryType = arrays ? CU_MEMORYTYPE_ARRAY : flat.srcMemoryType;
  result.dstMemoryType = flat.dstMemoryType;
  result.srcHost = flat.srcHost;
  result.srcDevice = flat.srcDevice;
  result.srcPitch = flat.srcPitch;
  result.srcHeight = of.srcPtr.ysize;
  result.srcXInBytes = of.srcPos.x;
  result.srcY = of.srcPos.y;
  result.srcZ = of.srcPos.z;
  result.dstHost = flat.dstHost;
  result.dstDevice = flat.dstDevice;
  result.dstPitch = flat.dstPitch;
  result.dstHeight = of.dstPtr.ysize;
  result.dstXInBytes = of.dstPos.x;
  result.dstY = of.dstPos.y;
  result.dstZ = of.dstPos.z;
  result.WidthInBytes = of.extent.width;
  result.Height = of.extent.height;
  result.Depth = of.extent.depth;
  return result;
}

/// Sets one slice after the other.
cudaError_t set_3d(const cudaPitchedPtr& to, int value, const cudaExtent& extent, cudaStream_t stream, bool wait) {
  for (std::size_t slice = 0; slice < extent.depth; ++slice) {
    void* start = static_cast<char*>(to.ptr) + slice * to.pitch * to.ysize;
    const cudaError_t error = wait ? cudaMemset2D(start, to.pitch, value, extent.width, extent.height)
                                   : cudaMemset2DAsync(start, to.pitch, value, extent.width, extent.height, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

/// Sets `place` to the address `offset` bytes into a variable, which must have `bytes` bytes from there on.
CUresult symbol_place(const void* symbol, std::size_t offset, std::size_t bytes, void** place) {
  CUdeviceptr address = 0;
  std::size_t size = 0;
  const CUresult found = find_variable(symbol, &address, &size);
  if (found != CUDA_SUCCESS) return found;
  if (offset > size || bytes > size - offset) return CUDA_ERROR_INVALID_VALUE;
  *place = reinterpret_cast<void*>(address + offset);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return report(cudaErrorInvalidValue);
  if (bytes == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  return RUN(cuMemAlloc, reinterpret_cast<CUdeviceptr*>(pointer), bytes);
}

cudaError_t CUDARTAPI cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return RUN(cuMemAllocPitch, reinterpret_cast<CUdeviceptr*>(pointer), pitch, width, height, 4);
}

cudaError_t CUDARTAPI cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  return RUN(cuMemAllocManaged, reinterpret_cast<CUdeviceptr*>(pointer), bytes, flags);
}

cudaError_t CUDARTAPI cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return RUN(cuMemAllocAsync, reinterpret_cast<CUdeviceptr*>(pointer), bytes, stream);
}

cudaError_t CUDARTAPI cudaFree(void* pointer) {
  return RUN(cuMemFree, device(pointer));
}

cudaError_t CUDARTAPI cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return RUN(cuMemFreeAsync, device(pointer), stream);
}

cudaError_t CUDARTAPI cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return RUN(cuMemHostAlloc, pointer, bytes, flags);
}

cudaError_t CUDARTAPI cudaMallocHost(void** pointer, size_t bytes) {
  return RUN(cuMemHostAlloc, pointer, bytes, 0);
}

cudaError_t CUDARTAPI cudaFreeHost(void* pointer) {
  return pointer == nullptr ? cudaSuccess : RUN(cuMemFreeHost, pointer);
}

cudaError_t CUDARTAPI cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return RUN(cuMemHostRegister, pointer, bytes, flags);
}

cudaError_t CUDARTAPI cudaHostUnregister(void* pointer) {
  return RUN(cuMemHostUnregister, pointer);
}

cudaError_t CUDARTAPI cudaHostGetDevicePointer(void** result, void* host, unsigned int flags) {
  return RUN(cuMemHostGetDevicePointer, reinterpret_cast<CUdeviceptr*>(result), host, flags);
}

cudaError_t CUDARTAPI cudaHostGetFlags(unsigned int* flags, void* host) {
  return RUN(cuMemHostGetFlags, flags, host);
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t* free, size_t* total) {
  return RUN(cuMemGetInfo, free, total);
}

cudaError_t CUDARTAPI cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  return report(copy(to, from, bytes, kind));
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return report(copy_async(to, from, bytes, kind, stream));
}

cudaError_t CUDARTAPI cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return report(copy_peer(to_device, from_device, [&](CUcontext to_context, CUcontext from_context) {
    return DRIVER(cuMemcpyPeer)(device(to), to_context, device(from), from_context, bytes);
  }));
}

cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                          cudaStream_t stream) {
  return report(copy_peer(to_device, from_device, [&](CUcontext to_context, CUcontext from_context) {
    return DRIVER(cuMemcpyPeerAsync)(device(to), to_context, device(from), from_context, bytes, stream);
  }));
}

cudaError_t CUDARTAPI cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                   size_t height, enum cudaMemcpyKind kind) {
  const CUDA_MEMCPY2D parameters = describe_2d(to, to_pitch, from, from_pitch, width, height, kind);
  return RUN(cuMemcpy2D, &parameters);
}

cudaError_t CUDARTAPI cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                        size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  const CUDA_MEMCPY2D parameters = describe_2d(to, to_pitch, from, from_pitch, width, height, kind);
  return RUN(cuMemcpy2DAsync, &parameters, stream);
}

cudaError_t CUDARTAPI cudaMalloc3D(struct cudaPitchedPtr* result, struct cudaExtent extent) {
  if (result == nullptr) return report(cudaErrorInvalidValue);
  *result = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&result->ptr, &result->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t CUDARTAPI cudaMemcpy3D(const struct cudaMemcpy3DParms* parameters) {
  if (parameters == nullptr) return report(cudaErrorInvalidValue);
  const CUDA_MEMCPY3D copy_of = describe_3d(*parameters);
  return RUN(cuMemcpy3D, &copy_of);
}

cudaError_t CUDARTAPI cudaMemcpy3DAsync(const struct cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  if (parameters == nullptr) return report(cudaErrorInvalidValue);
  const CUDA_MEMCPY3D copy_of = describe_3d(*parameters);
  return RUN(cuMemcpy3DAsync, &copy_of, stream);
}

cudaError_t CUDARTAPI cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent) {
  return set_3d(to, value, extent, nullptr, true);
}

cudaError_t CUDARTAPI cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                                        cudaStream_t stream) {
  return set_3d(to, value, extent, stream, false);
}

cudaError_t CUDARTAPI cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                                         enum cudaMemcpyKind kind) {
  void* place = nullptr;
  const CUresult found = symbol_place(symbol, offset, bytes, &place);
  return report(found == CUDA_SUCCESS ? copy(place, from, bytes, kind) : found);
}

cudaError_t CUDARTAPI cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                           enum cudaMemcpyKind kind) {
  void* place = nullptr;
  const CUresult found = symbol_place(symbol, offset, bytes, &place);
  return report(found == CUDA_SUCCESS ? copy(to, place, bytes, kind) : found);
}

cudaError_t CUDARTAPI cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                              enum cudaMemcpyKind kind, cudaStream_t stream) {
  void* place = nullptr;
  const CUresult found = symbol_place(symbol, offset, bytes, &place);
  return report(found == CUDA_SUCCESS ? copy_async(place, from, bytes, kind, stream) : found);
}

cudaError_t CUDARTAPI cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                                enum cudaMemcpyKind kind, cudaStream_t stream) {
  void* place = nullptr;
  const CUresult found = symbol_place(symbol, offset, bytes, &place);
  return report(found == CUDA_SUCCESS ? copy_async(to, place, bytes, kind, stream) : found);
}

cudaError_t CUDARTAPI cudaMemset(void* to, int value, size_t bytes) {
  return RUN(cuMemsetD8, device(to), static_cast<unsigned char>(value), bytes);
}

cudaError_t CUDARTAPI cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return RUN(cuMemsetD8Async, device(to), static_cast<unsigned char>(value), bytes, stream);
}

cudaError_t CUDARTAPI cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return RUN(cuMemsetD2D8, device(to), pitch, static_cast<unsigned char>(value), width, height);
}

cudaError_t CUDARTAPI cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                        cudaStream_t stream) {
  return RUN(cuMemsetD2D8Async, device(to), pitch, static_cast<unsigned char>(value), width, height, stream);
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(struct cudaPointerAttributes* result, const void* pointer) {
  if (result == nullptr) return report(cudaErrorInvalidValue);
  unsigned type = 0;
  int managed = 0;
  int ordinal = 0;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* data[] = {&type, &managed, &ordinal};
  const cudaError_t error = RUN(cuPointerGetAttributes, 3, attributes, data, device(pointer));
  if (error != cudaSuccess) return error;
  *result = {};
  result->type = managed != 0                                          ? cudaMemoryTypeManaged
                 : type == static_cast<unsigned>(CU_MEMORYTYPE_DEVICE) ? cudaMemoryTypeDevice
                 : type == static_cast<unsigned>(CU_MEMORYTYPE_HOST)   ? cudaMemoryTypeHost
                                                                       : cudaMemoryTypeUnregistered;
  result->device = ordinal;
  if (type != 0) result->devicePointer = const_cast<void*>(pointer);
  if (type != static_cast<unsigned>(CU_MEMORYTYPE_DEVICE) || managed != 0)
    result->hostPointer = const_cast<void*>(pointer);
  return cudaSuccess;
}

}  // extern "C"
