// cuMemPool*, cuDeviceGetDefaultMemPool, cuMemAllocFromPoolAsync: pools of devices.
#include <cuda.h>

#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

extern "C" {

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* result, const CUmemPoolProps* properties) {
  return with_driver([&](Driver& driver) {
    if (result == nullptr || properties == nullptr || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
      return CUDA_ERROR_INVALID_VALUE;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    Device* const device = driver.device(properties->location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *result = driver.pools.add(std::make_shared<MemoryPool>(MemoryPool{device}));
    return CUDA_SUCCESS;
  });
}

/// What was allocated from it stays.
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool handle) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
    if (pool == nullptr || driver.default_pool(*pool->device) == handle) return CUDA_ERROR_INVALID_VALUE;
    driver.pools.remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* result, CUdevice device) {
  return with_device(device, [&](Driver& driver, Device& found) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = driver.default_pool(found);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr* result, size_t bytes, CUmemoryPool handle, CUstream stream) {
  return with_stream(stream, [&](Driver& driver, const std::shared_ptr<Stream>& found) {
    const std::shared_ptr<MemoryPool> pool = driver.pools.find(handle);
    if (result == nullptr || bytes == 0 || pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    bool capturing = false;
    if (const CUresult refused = driver.captures.check_work(*found, &capturing); refused != CUDA_SUCCESS)
      return refused;
    if (capturing) return CUDA_ERROR_NOT_SUPPORTED;
    *result = driver.memory.allocate(bytes, MemoryKind::kDevice, 0, found->context(), pool->device->ordinal);
    return *result != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

}  // extern "C"
