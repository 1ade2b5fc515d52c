// Calls that tell the program how large a device is: its SMs (told_sms.h), numbers that depend on them, and its memory
// (held_memory.h). cuMemGetInfo is in allocate.cc.
//
// The SM resources of green contexts (cuDeviceGetDevResource and related calls) are not changed. A program gives them
// back to the driver, which splits them and makes contexts of the parts. They name particular SMs, so a changed number
// in them would not match the rest.
#include "libgpuslice/base/driver.h"
#include "libgpuslice/client/held_memory.h"
#include "libgpuslice/client/told_sms.h"
#include "libgpuslice/interpose/hooks.h"

namespace gpuslice {

namespace {

struct Sms {
  std::uint32_t told = 1, real = 1;
};

/// SMs of the current context's device. Both numbers are equal if the driver does not report them.
Sms current_sms() {
  CUdevice device = 0;
  int real = 0;
  if (!driver().cuCtxGetDevice || !driver().cuDeviceGetAttribute || driver().cuCtxGetDevice(&device) != CUDA_SUCCESS ||
      driver().cuDeviceGetAttribute(&real, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS ||
      real <= 0)
    return {};
  const auto sms = static_cast<std::uint32_t>(real);
  return {.told = ToldSms::get().tell(device, sms), .real = sms};
}

/// `call` counts something on the whole device. The program gets the part for the SMs that it is told of.
template <class Call>
CUresult count_part(int* count, Call call) {
  return nothrow([&] {
    const CUresult result = call();
    if (result != CUDA_SUCCESS || !count) return result;
    const Sms sms = current_sms();
    *count = part_of(*count, sms.told, sms.real);
    return result;
  });
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  const auto ask = driver().cuDeviceGetAttribute;
  if (!ask) return CUDA_ERROR_NOT_INITIALIZED;
  if (attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) return ask(value, attribute, device);
  return nothrow([&] {
    const CUresult result = ask(value, attribute, device);
    if (result == CUDA_SUCCESS && *value > 0)
      *value = static_cast<int>(ToldSms::get().tell(device, static_cast<std::uint32_t>(*value)));
    return result;
  });
}

GPUSLICE_HOOK cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return nothrow([&] {
    if (!driver().cuDeviceTotalMem_v2) return CUDA_ERROR_NOT_INITIALIZED;
    const CUresult result = driver().cuDeviceTotalMem_v2(bytes, device);
    if (result == CUDA_SUCCESS) HeldMemory::get().limit(device, nullptr, bytes);
    return result;
  });
}

GPUSLICE_HOOK cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared,
                                               size_t dynamic, int limit) {
  const auto ask = driver().cuOccupancyMaxPotentialBlockSize;
  if (!ask) return CUDA_ERROR_NOT_INITIALIZED;
  return count_part(grid, [&] { return ask(grid, block, function, shared, dynamic, limit); });
}

GPUSLICE_HOOK cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                        CUoccupancyB2DSize shared, size_t dynamic, int limit,
                                                        unsigned flags) {
  const auto ask = driver().cuOccupancyMaxPotentialBlockSizeWithFlags;
  if (!ask) return CUDA_ERROR_NOT_INITIALIZED;
  return count_part(grid, [&] { return ask(grid, block, function, shared, dynamic, limit, flags); });
}

GPUSLICE_HOOK cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  const auto ask = driver().cuOccupancyMaxActiveClusters;
  if (!ask) return CUDA_ERROR_NOT_INITIALIZED;
  return count_part(clusters, [&] { return ask(clusters, function, config); });
}

GPUSLICE_HOOK cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
  return nothrow([&] {
    if (!driver().cuCtxGetExecAffinity) return CUDA_ERROR_NOT_INITIALIZED;
    const CUresult result = driver().cuCtxGetExecAffinity(affinity, type);
    if (result != CUDA_SUCCESS || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return result;
    const Sms sms = current_sms();
    if (sms.told < sms.real) affinity->param.smCount.val = std::min(affinity->param.smCount.val, sms.told);
    return result;
  });
}
