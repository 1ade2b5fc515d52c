// Calls that allocate device memory, which may be limited (held_memory.h), and calls that report how much there is.
// Also the call that frees memory in a stream's order. Other calls that free memory block in the driver: memory.cc.
#include <optional>

#include "libgpuslice/agent/swap.h"
#include "libgpuslice/base/array_bytes.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/pools.h"
#include "libgpuslice/client/held_memory.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/streams/joining.h"

namespace gpuslice {

namespace {

/// On every GPU, the pitch of cuMemAllocPitch is a multiple of this. The real pitch is known only afterwards.
constexpr std::size_t kPitch = 512;

/// `call` allocates about `expected` bytes in the current context, or on the device `on`. `real` returns how many they
/// are.
template <class Call, class Real>
CUresult allocate(CUdeviceptr* out, std::uint64_t expected, Call call, Real real,
                  std::optional<CUdevice> on = std::nullopt) {
  return nothrow([&] {
    CUdevice device = on.value_or(0);
    CUcontext context = nullptr;
    if (!out || on == Pools::kOnNoDevice || (!on && driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) ||
        driver().cuCtxGetCurrent(&context) != CUDA_SUCCESS)
      return call();
    HeldMemory& held = HeldMemory::get();
    if (!held.take(device, expected)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = call();
    if (result == CUDA_SUCCESS) {
      held.allocated(*out, context, device, expected, real());
    } else {
      held.give_back(device, expected);
    }
    return result;
  });
}

template <class Function, class... Arguments>
CUresult allocate_bytes(Function function, CUdeviceptr* out, std::size_t bytes, Arguments... arguments) {
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  return allocate(
      out, bytes, [&] { return function(out, bytes, arguments...); }, [&] { return bytes; });
}

/// Arrays are kept in the books under their handles. These are host addresses, which no device memory has.
template <class Array, class Call>
CUresult allocate_array(Array* out, std::uint64_t bytes, Call call) {
  if (!out || bytes == 0) return call();
  CUdeviceptr handle = 0;
  const auto make = [&] {
    const CUresult result = call();
    if (result == CUDA_SUCCESS) handle = reinterpret_cast<CUdeviceptr>(*out);
    return result;
  };
  return allocate(&handle, bytes, make, [&] { return bytes; });
}

/// The device of a stream. Nothing: the current one's, or the driver does not say.
std::optional<CUdevice> device_of(CUstream stream) {
  CUdevice device = 0;
  if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD || !driver().cuStreamGetDevice ||
      driver().cuStreamGetDevice(stream, &device) != CUDA_SUCCESS)
    return std::nullopt;
  return device;
}

/// The device of a pool: one that the program made, or that the device has from the start.
std::optional<CUdevice> device_of(CUmemoryPool pool) {
  if (const std::optional<CUdevice> known = Pools::get().device_of(pool)) return known;
  int count = 0;
  if (!driver().cuDeviceGetDefaultMemPool || driver().cuDeviceGetCount(&count) != CUDA_SUCCESS) return std::nullopt;
  for (CUdevice device = 0; device < count; ++device) {
    CUmemoryPool its = nullptr;
    if (driver().cuDeviceGetDefaultMemPool(&its, device) != CUDA_SUCCESS || its != pool) continue;
    Pools::get().add(pool, {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device});
    return device;
  }
  return std::nullopt;
}

/// A call during a capture of `stream` allocates nothing: the memory belongs to the graph (graph_memory.h). `from`:
/// what has the memory, the stream or a pool.
template <class Function, class From, class... Arguments>
CUresult allocate_in_stream(Function function, CUdeviceptr* out, std::size_t bytes, CUstream stream, From from,
                            Arguments... arguments) {
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  const StreamCall in_flight(stream);
  const auto call = [&] { return function(out, bytes, arguments..., stream); };
  if (capturing(stream)) return call();
  return nothrow([&] {
    return allocate(
        out, bytes, call, [&] { return bytes; }, device_of(from));
  });
}

/// Notes where the pool is that the driver returns.
template <class Call>
CUresult note_pool(CUmemoryPool* pool, const CUmemLocation* location, CUmemAllocationType type, Call call) {
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) Swap::get().note_managed_memory();
  return nothrow([&] {
    const CUresult result = call();
    if (result == CUDA_SUCCESS && pool && location) Pools::get().add(*pool, *location);
    return result;
  });
}

using GetPool = CUresult (*)(CUmemoryPool*, CUmemLocation*, CUmemAllocationType);

CUresult get_pool(const char* name, CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  const auto real = reinterpret_cast<GetPool>(libcuda_function(name));
  return real ? note_pool(pool, location, type, [&] { return real(pool, location, type); })
              : CUDA_ERROR_NOT_INITIALIZED;
}

/// The memory stops counting now, although the stream may free it later. The driver takes it back only when memory is
/// wanted after that point of the stream.
CUresult free_in_stream(CUdeviceptr address, CUstream stream) {
  if (!driver().cuMemFreeAsync) return CUDA_ERROR_NOT_INITIALIZED;
  const StreamCall in_flight(stream);
  return nothrow([&] {
    const auto call = [&] { return driver().cuMemFreeAsync(address, stream); };
    return capturing(stream) ? call() : counted_free(address, call);
  });
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  return allocate_bytes(driver().cuMemAlloc_v2, out, bytes);
}

GPUSLICE_HOOK cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  Swap::get().note_managed_memory();
  return allocate_bytes(driver().cuMemAllocManaged, out, bytes, flags);
}

GPUSLICE_HOOK cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned element) {
  const auto function = driver().cuMemAllocPitch_v2;
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  const auto call = [&] { return function(out, pitch, width, height, element); };
  std::size_t expected = 0;
  if (__builtin_add_overflow(width, kPitch - 1, &expected) ||
      __builtin_mul_overflow(expected / kPitch * kPitch, height, &expected)) {
    return call();  // the driver refuses it
  }
  return allocate(out, expected, call, [&] { return *pitch * height; });
}

GPUSLICE_HOOK cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* array) {
  const auto function = driver().cuArrayCreate_v2;
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  return allocate_array(out, array ? array_bytes(*array) : 0, [&] { return function(out, array); });
}
GPUSLICE_HOOK cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* array) {
  const auto function = driver().cuArray3DCreate_v2;
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  return allocate_array(out, array ? array_bytes(*array) : 0, [&] { return function(out, array); });
}
GPUSLICE_HOOK cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* array, unsigned levels) {
  const auto function = driver().cuMipmappedArrayCreate;
  if (!function) return CUDA_ERROR_NOT_INITIALIZED;
  return allocate_array(out, array ? array_bytes(*array, levels) : 0, [&] { return function(out, array, levels); });
}

GPUSLICE_HOOK cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream stream) {
  stream = explicit_stream(stream, false);
  return allocate_in_stream(driver().cuMemAllocAsync, out, bytes, stream, stream);
}
GPUSLICE_HOOK cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream stream) {
  stream = explicit_stream(stream, true);
  return allocate_in_stream(driver().cuMemAllocAsync, out, bytes, stream, stream);
}
GPUSLICE_HOOK cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocate_in_stream(driver().cuMemAllocFromPoolAsync, out, bytes, explicit_stream(stream, false), pool, pool);
}
GPUSLICE_HOOK cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return allocate_in_stream(driver().cuMemAllocFromPoolAsync, out, bytes, explicit_stream(stream, true), pool, pool);
}

GPUSLICE_HOOK cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  if (!driver().cuMemPoolCreate) return CUDA_ERROR_NOT_INITIALIZED;
  return note_pool(pool, properties ? &properties->location : nullptr,
                   properties ? properties->allocType : CU_MEM_ALLOCATION_TYPE_INVALID,
                   [&] { return driver().cuMemPoolCreate(pool, properties); });
}
/// Before the call: another pool may get the handle right afterwards.
GPUSLICE_HOOK cuMemPoolDestroy(CUmemoryPool pool) {
  if (!driver().cuMemPoolDestroy) return CUDA_ERROR_NOT_INITIALIZED;
  Pools::get().remove(pool);
  return driver().cuMemPoolDestroy(pool);
}
GPUSLICE_HOOK cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return get_pool("cuMemGetDefaultMemPool", pool, location, type);
}
GPUSLICE_HOOK cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return get_pool("cuMemGetMemPool", pool, location, type);
}

GPUSLICE_HOOK cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return free_in_stream(address, explicit_stream(stream, false));
}
GPUSLICE_HOOK cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return free_in_stream(address, explicit_stream(stream, true));
}

GPUSLICE_HOOK cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (!driver().cuMemGetInfo_v2) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = driver().cuMemGetInfo_v2(free, total);
  if (result != CUDA_SUCCESS) return result;
  return nothrow([&] {
    CUdevice device = 0;
    if (driver().cuCtxGetDevice(&device) == CUDA_SUCCESS) HeldMemory::get().limit(device, free, total);
    return CUDA_SUCCESS;
  });
}
