// Calls that make memory apart from addresses and map it (physical_memory.h). The memory counts as held until it no
// longer exists.
#include <optional>
#include <utility>

#include "libgpuslice/base/allocations.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/physical_memory.h"
#include "libgpuslice/client/held_memory.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

namespace {

/// Makes a call that ends a handle or mappings.
template <class Call>
CUresult leave(PhysicalMemory::Leaving leaving, Call call) {
  PhysicalMemory& memory = PhysicalMemory::get();
  std::optional<QuiesceLaunches> quiesced;
  join_all();
  if (memory.frees(leaving)) quiesced.emplace();  // as for other calls that free memory
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    memory.put_back(std::move(leaving));
    return result;
  }
  for (const PhysicalMemory::Made& gone : memory.ended(std::move(leaving)))
    HeldMemory::get().give_back(gone.device, gone.bytes);
  return result;
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* properties,
                          unsigned long long flags) {
  const auto function = driver().cuMemCreate;
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  if (!handle || !properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return function(handle, size, properties, flags);
  return nothrow([&] {
    const CUdevice device = properties->location.id;
    if (!HeldMemory::get().take(device, size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = function(handle, size, properties, flags);
    if (result == CUDA_SUCCESS)
      PhysicalMemory::get().made(*handle, {device, size});
    else
      HeldMemory::get().give_back(device, size);
    return result;
  });
}

GPUSLICE_HOOK cuMemRelease(CUmemGenericAllocationHandle handle) {
  const auto function = driver().cuMemRelease;
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  return nothrow([&] { return leave(PhysicalMemory::get().release(handle), [&] { return function(handle); }); });
}

GPUSLICE_HOOK cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const auto function = driver().cuMemRetainAllocationHandle;
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  return nothrow([&] {
    const CUresult result = function(handle, address);
    if (result == CUDA_SUCCESS) PhysicalMemory::get().retained(*handle, reinterpret_cast<CUdeviceptr>(address));
    return result;
  });
}

GPUSLICE_HOOK cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                       unsigned long long flags) {
  const auto function = driver().cuMemMap;
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  return nothrow([&] {
    const CUresult result = function(address, size, offset, handle, flags);
    if (result != CUDA_SUCCESS) return result;
    Allocations::get().add(address, size);
    PhysicalMemory::get().mapped(address, size, handle);
    return result;
  });
}

GPUSLICE_HOOK cuMemUnmap(CUdeviceptr address, size_t size) {
  const auto function = driver().cuMemUnmap;
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  return nothrow([&] {
    // Before the call: the addresses may be mapped anew right afterwards.
    Allocations::get().remove(address, size);
    return leave(PhysicalMemory::get().unmap(address, size), [&] { return function(address, size); });
  });
}
