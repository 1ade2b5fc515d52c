// cuDeviceGraphMemTrim, cuDevice*GraphMemAttribute.
#include <cuda.h>

#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

extern "C" {

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device) {
  return with_device(device, [](Driver& driver, Device& found) {
    driver.graph_memories.trim(found.ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return with_device(device, [&](Driver& driver, Device& found) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const GraphMemories::Amounts amounts = driver.graph_memories.amounts(found.ordinal);
    auto& out = *static_cast<cuuint64_t*>(value);
    switch (attribute) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        out = amounts.used;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        out = amounts.most_used;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        out = amounts.reserved;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        out = amounts.most_reserved;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

/// The highest amounts can be set to 0 alone.
CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void* value) {
  return with_device(device, [&](Driver& driver, Device& found) {
    const bool used = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0 ||
        (!used && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
      return CUDA_ERROR_INVALID_VALUE;
    driver.graph_memories.reset_most(found.ordinal, used);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
