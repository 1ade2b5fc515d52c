// cuInit, cuDevice*.
#include <cuda.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "softgpu/api/channels.h"
#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

/// -1 stands for the number of SMs, which is known only at run time.
constexpr int kSmCount = -1;

struct AttributeRow {
  CUdevice_attribute attribute;
  int value;
};

/// An attribute that is not in the table is 0: not supported.
constexpr AttributeRow kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kBlockThreads},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, kBlockSharedDefault},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kBlockSharedOptin},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, kSmShared},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, kBlockReservedShared},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, kConstBytes},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, kWarpThreads},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, kSmRegisters},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, kSmRegisters},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 64},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 32 << 20},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, kAllocAlign},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, kAllocAlign},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, kSmCount},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, kSmThreads},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, kSmBlocks},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, kComputeMajor},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, kComputeMinor},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
};

}  // namespace

extern "C" {

CUresult CUDAAPI cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  try {
    const bool first = Driver::get() == nullptr;
    const CUresult result = Driver::start();
    if (first) make_channel_group();
    return result;
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return with_driver([&](Driver& driver) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver.devices.size());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return with_device(ordinal, [&](Driver&, Device& found) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = found.ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  return with_device(device, [&](Driver&, Device&) {
    if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::strncpy(name, kDeviceName, static_cast<std::size_t>(length) - 1);
    name[length - 1] = '\0';
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return with_device(device, [&](Driver&, Device& found) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *uuid = device_uuid(found.number);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return with_device(device, [&](Driver& driver, Device& found) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = driver.memory.limit(found.ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return with_device(device, [&](Driver&, Device&) {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = kComputeMajor;
    *minor = kComputeMinor;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return with_device(device, [&](Driver&, Device& found) {
    const std::string bus_id = pci_bus_id(found.number);
    if (id == nullptr || length <= static_cast<int>(bus_id.size())) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(id, bus_id.c_str(), bus_id.size() + 1);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  return with_driver([&](Driver& driver) {
    if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // "domain:bus:device.function"; the domain and the function may be left out.
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    if (std::sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
      domain = function = 0;
      if (std::sscanf(id, "%x:%x.%x", &bus, &slot, &function) < 2) return CUDA_ERROR_INVALID_VALUE;
    }
    for (const auto& one : driver.devices) {
      if (domain != 0 || bus != one->number || slot != 0 || function != 0) continue;
      *device = one->ordinal;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return with_device(device, [&](Driver& driver, Device& found) {
    if (value == nullptr || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? static_cast<int>(found.number) : 0;
    if (attribute == CU_DEVICE_ATTRIBUTE_MPS_ENABLED) *value = driver.config.mps_queues != 0 || driver.config.mps != 0;
    for (const AttributeRow& row : kAttributes) {
      if (row.attribute == attribute)
        *value = row.value == kSmCount ? static_cast<int>(found.table->own_sms()) : row.value;
    }
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
