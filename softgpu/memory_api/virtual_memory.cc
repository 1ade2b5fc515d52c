// cuMemAddress*, cuMemCreate, cuMemMap and related functions. No context is needed. If the current one is broken, these
// functions return its error too. Handles cannot be exported.
#include <cuda.h>

#include <algorithm>
#include <span>

#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

/// Runs `body(driver)` unless the current context is unusable.
template <class Body>
CUresult with_memory(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_driver(
      [&](Driver& driver) {
        const bool current = !context_stack().empty() && context_stack().back() != nullptr;
        const CUresult error = current ? context_stack().back()->error() : CUDA_SUCCESS;
        return error != CUDA_SUCCESS ? error : body(driver);
      },
      call);
}

bool is_device(const Driver& driver, const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && driver.device(location.id) != nullptr;
}

CUresult check_properties(const Driver& driver, const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!is_device(driver, properties->location)) return CUDA_ERROR_INVALID_DEVICE;
  const bool plain = properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE;
  return plain ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags) {
  return with_memory([&](Driver& driver) {
    const CUresult checked = check_properties(driver, properties);
    if (checked != CUDA_SUCCESS || granularity == nullptr)
      return checked != CUDA_SUCCESS ? checked : CUDA_ERROR_INVALID_VALUE;
    *granularity = kMemoryGranularity;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr wish,
                                     unsigned long long flags) {
  return with_memory([&](Driver& driver) {
    if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.virtual_memory.reserve(address, bytes, alignment, wish);
  });
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return with_memory([&](Driver& driver) { return driver.virtual_memory.free(address, bytes); });
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                             unsigned long long flags) {
  return with_memory([&](Driver& driver) {
    if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult checked = check_properties(driver, properties); checked != CUDA_SUCCESS) return checked;
    std::shared_ptr<PhysicalMemory> physical;
    const CUresult created = driver.virtual_memory.create(&physical, bytes, *properties);
    if (created == CUDA_SUCCESS) *handle = driver.physical_handles.add(std::move(physical));
    return created;
  });
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  return with_memory([&](Driver& driver) {
    return driver.physical_handles.release(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return with_memory([&](Driver& driver) {
    const auto physical = driver.virtual_memory.mapped_at(reinterpret_cast<CUdeviceptr>(address));
    if (handle == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *handle = driver.physical_handles.add(physical);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                        CUmemGenericAllocationHandle handle) {
  return with_memory([&](Driver& driver) {
    const auto physical = driver.physical_handles.find(handle);
    if (properties == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *properties = physical->properties();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                          unsigned long long flags) {
  return with_memory([&](Driver& driver) {
    const auto physical = driver.physical_handles.find(handle);
    if (physical == nullptr || offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return driver.virtual_memory.map(address, bytes, physical);
  });
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return with_memory([&](Driver& driver) { return driver.virtual_memory.unmap(address, bytes); });
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* access, size_t count) {
  return with_memory([&](Driver& driver) {
    if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    const bool devices =
        std::all_of(access, access + count, [&](const auto& one) { return is_device(driver, one.location); });
    if (!devices) return CUDA_ERROR_INVALID_VALUE;
    for (const CUmemAccessDesc& one : std::span(access, count)) {
      const CUresult set = driver.virtual_memory.set_access(address, bytes, one.location.id, one.flags);
      if (set != CUDA_SUCCESS) return set;
    }
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return with_memory([&](Driver& driver) {
    if (flags == nullptr || location == nullptr || !is_device(driver, *location)) return CUDA_ERROR_INVALID_VALUE;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    const CUresult found = driver.virtual_memory.get_access(address, location->id, &access);
    if (found == CUDA_SUCCESS) *flags = access;
    return found;
  });
}

}  // extern "C"
