#include "libgpuslice/image/launch_params.h"

#include <cstring>

#include "ptx/persistent_abi.h"

namespace gpuslice {

bool pack(const std::vector<Parameter>& params, std::size_t bytes, void** values, void** extra,
          std::vector<std::byte>& block) {
  block.resize(bytes);
  if (params.empty()) return true;
  if (values) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (!values[i]) return false;
      std::memcpy(block.data() + params[i].offset, values[i], params[i].size);
    }
    return true;
  }
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1]) size = *static_cast<const std::size_t*>(extra[i + 1]);
  }
  const Parameter& last = params.back();
  if (!buffer || size < last.offset + last.size) return false;
  std::memcpy(block.data(), buffer, last.offset + last.size);
  return true;
}

bool pack(const KernelInfo& kernel, void** params, void** extra, std::vector<std::byte>& block) {
  return pack(kernel.params, kernel.args_offset + sizeof(gpuctl::ptx::LaunchArgs), params, extra, block);
}

bool fits_whole_warps(const KernelInfo& kernel, const std::uint32_t (&grid)[3], const std::uint32_t (&block)[3]) {
  return !kernel.needs_whole_warps || (block[0] % 32 == 0 && std::uint64_t{grid[0]} * block[0] >> 31 == 0);
}

std::vector<CUlaunchAttribute> with_priority(const CUlaunchAttribute* attributes, unsigned count, int priority) {
  std::vector<CUlaunchAttribute> all;
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i].id != CU_LAUNCH_ATTRIBUTE_PRIORITY) all.push_back(attributes[i]);
  }
  CUlaunchAttribute own{};
  own.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  own.value.priority = priority;
  all.push_back(own);
  return all;
}

std::optional<int> asked_priority(const CUlaunchAttribute* attributes, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY) return attributes[i].value.priority;
  }
  return std::nullopt;
}

bool take_attributes(const CUlaunchAttribute* attributes, unsigned count, std::vector<CUlaunchAttribute>& keep) {
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i].id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        break;  // permits an early start, which is not used
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        keep.push_back(attributes[i]);
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        if (attributes[i].value.cooperative) return false;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
        const auto& cluster = attributes[i].value.clusterDim;
        if (cluster.x > 1 || cluster.y > 1 || cluster.z > 1) return false;
        break;  // a block is a cluster of one
      }
      default:
        return false;
    }
  }
  return true;
}

}  // namespace gpuslice
