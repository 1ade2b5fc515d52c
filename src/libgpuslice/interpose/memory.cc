// Calls that free memory or end contexts: they block in the driver until the device is idle.
#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "ipc/stub.h"
#include "libgpuslice/agent/bursts.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/client/held_memory.h"
#include "libgpuslice/graphs/graph_exec.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

namespace {

template <class Function, class... Arguments>
CUresult quietly(Function function, Arguments... arguments) {
  return nothrow([&] {
    if (!function) return CUDA_ERROR_NOT_INITIALIZED;
    join_all();
    const BurstWait wait;
    const CUresult result = [&] {
      QuiesceLaunches quiesced;
      return function(arguments...);
    }();
    if (result == CUDA_SUCCESS) wait.over(Burst::Seen::kSome);
    return result;
  });
}

template <class Function, class Array>
CUresult destroy_array(Function function, Array array) {
  return nothrow(
      [&] { return counted_free(reinterpret_cast<CUdeviceptr>(array), [&] { return quietly(function, array); }); });
}

/// Whether the primary context of the device no longer exists. If the driver does not say, it counts as ended; one that
/// still exists is managed anew at its next launch.
bool primary_context_ended(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  const auto ask = driver().cuDevicePrimaryCtxGetState;
  return !ask || ask(device, &flags, &active) != CUDA_SUCCESS || !active;
}

/// How many times the program retains the primary context of a device. If the library is attached late, the count may
/// be too low.
std::atomic<int>& primary_uses(CUdevice device) {
  static std::array<std::atomic<int>, gpuctl::ipc::kMaxDevices> uses{};
  return uses[static_cast<std::size_t>(device) % uses.size()];
}

/// The managed contexts that may be the primary one of the device: all of the device where the driver does not say
/// which. One that still exists is managed anew at its next launch.
std::vector<CUcontext> primary_contexts(CUdevice device) {
  CUcontext primary = nullptr;
  unsigned flags = 0;
  int active = 1;
  const Driver& d = driver();
  const bool says =
      d.cuDevicePrimaryCtxGetState && d.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS;
  if (says && !active) return {};
  if (says && d.cuDevicePrimaryCtxRetain(&primary, device) == CUDA_SUCCESS) {
    d.cuDevicePrimaryCtxRelease_v2(device);
    return {primary};
  }
  std::vector<CUcontext> found;
  for (const Context* context : Contexts::all())
    if (context->device() == device) found.push_back(context->handle());
  return found;
}

/// Green contexts retain the primary context too, and would keep it alive when nothing else does.
void give_up_parts(const std::vector<CUcontext>& primary) {
  for (Context* context : Contexts::all()) {
    if (std::ranges::find(primary, context->handle()) == primary.end()) continue;
    ExecutableGraph::give_up_copies(context->handle());
    context->opaque().give_up_parts();
  }
}

/// The device of a context; all of them if it is not managed.
int device_of(CUcontext handle) {
  for (const Context* context : Contexts::all())
    if (context->handle() == handle) return context->device();
  return QuiesceLaunches::kAllDevices;
}

CUresult destroy_context(CUcontext context, CUresult(CUDAAPI* function)(CUcontext)) {
  return nothrow([&] {
    if (!function) return CUDA_ERROR_NOT_INITIALIZED;
    join_all();
    ExecutableGraph::give_up_copies(context);
    QuiesceLaunches quiesced(device_of(context));
    Contexts::forget(context);
    forget_burst(device_of(context));
    const CUresult result = function(context);
    if (result == CUDA_SUCCESS) HeldMemory::get().forget(context);
    return result;
  });
}

CUresult reset_primary(CUdevice device, CUresult(CUDAAPI* function)(CUdevice)) {
  return nothrow([&] {
    if (!function) return CUDA_ERROR_NOT_INITIALIZED;
    join_all();
    QuiesceLaunches quiesced(device);
    const std::vector<CUcontext> primary = primary_contexts(device);
    give_up_parts(primary);
    std::ranges::for_each(primary, Contexts::forget);
    forget_burst(device);
    const CUresult result = function(device);
    if (result == CUDA_SUCCESS) HeldMemory::get().forget_device(device);  // primary_uses() stays: nothing is released
    return result;
  });
}

CUresult release_primary(CUdevice device, CUresult(CUDAAPI* function)(CUdevice)) {
  return nothrow([&] {
    if (!function) return CUDA_ERROR_NOT_INITIALIZED;
    join_all();
    QuiesceLaunches quiesced(device);
    const std::vector<CUcontext> primary = primary_contexts(device);
    // This may be the last release, which ends the memory that the agent looks at. The driver does not say so before.
    const AgentsHeld held(device);
    if (primary_uses(device) <= 1) forget_burst(device);
    const CUresult result = function(device);
    if (result != CUDA_SUCCESS) return result;
    if (--primary_uses(device) <= 0) give_up_parts(primary);
    if (!primary_context_ended(device)) return result;
    std::ranges::for_each(primary, Contexts::forget_gone);
    HeldMemory::get().forget_device(device);
    return result;
  });
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuMemFree_v2(CUdeviceptr pointer) {
  return nothrow([&] { return counted_free(pointer, [&] { return quietly(driver().cuMemFree_v2, pointer); }); });
}
GPUSLICE_HOOK cuMemFreeHost(void* pointer) {
  return quietly(driver().cuMemFreeHost, pointer);
}
GPUSLICE_HOOK cuMemHostUnregister(void* pointer) {
  return quietly(driver().cuMemHostUnregister, pointer);
}
GPUSLICE_HOOK cuArrayDestroy(CUarray array) {
  return destroy_array(driver().cuArrayDestroy, array);
}
GPUSLICE_HOOK cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroy_array(driver().cuMipmappedArrayDestroy, array);
}

GPUSLICE_HOOK cuCtxDestroy_v2(CUcontext context) {
  return destroy_context(context, driver().cuCtxDestroy_v2);
}
#undef cuCtxDestroy
GPUSLICE_HOOK cuCtxDestroy(CUcontext context) {
  return destroy_context(context, older<decltype(&cuCtxDestroy_v2)>("cuCtxDestroy"));
}

GPUSLICE_HOOK cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!driver().cuDevicePrimaryCtxRetain) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = driver().cuDevicePrimaryCtxRetain(context, device);
  if (result == CUDA_SUCCESS) ++primary_uses(device);
  return result;
}

GPUSLICE_HOOK cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return reset_primary(device, driver().cuDevicePrimaryCtxReset_v2);
}
#undef cuDevicePrimaryCtxReset
GPUSLICE_HOOK cuDevicePrimaryCtxReset(CUdevice device) {
  return reset_primary(device, older<decltype(&cuDevicePrimaryCtxReset_v2)>("cuDevicePrimaryCtxReset"));
}

GPUSLICE_HOOK cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return release_primary(device, driver().cuDevicePrimaryCtxRelease_v2);
}
#undef cuDevicePrimaryCtxRelease
GPUSLICE_HOOK cuDevicePrimaryCtxRelease(CUdevice device) {
  return release_primary(device, older<decltype(&cuDevicePrimaryCtxRelease_v2)>("cuDevicePrimaryCtxRelease"));
}
