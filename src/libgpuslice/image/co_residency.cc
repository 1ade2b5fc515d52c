#include "libgpuslice/image/co_residency.h"

#include <algorithm>
#include <iterator>

namespace gpuslice {

namespace {

/// The blocks of a cluster run on SMs that are near each other. A part of the GPU is certain to have such SMs for
/// clusters of at most this many blocks.
constexpr std::uint64_t kMostInAnyPart = 8;

}  // namespace

bool blocks_may_wait(std::string_view kernel) {
  static constexpr std::string_view kParts[] = {"spsv",  "spsm",         "csrsv",         "csrsm",      "csrilu",
                                                "csric", "bsrsv",        "bsrsm",         "bsrilu",     "bsric",
                                                "trsv",  "blockPersist", "ncclDevKernel", "ncclKernel", "nvshmem"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [kernel](std::string_view part) { return kernel.find(part) != kernel.npos; });
}

CoResidency co_residency_of(const CUlaunchAttribute* attributes, unsigned count, std::uint64_t blocks) {
  CoResidency co_residency;
  std::uint64_t cluster = 1;
  for (unsigned i = 0; i < count; ++i) {
    const CUlaunchAttributeValue& value = attributes[i].value;
    if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && value.cooperative != 0) {
      co_residency = {.blocks = blocks, .how = "cooperatively"};
    } else if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const std::uint64_t size = std::uint64_t{value.clusterDim.x} * value.clusterDim.y * value.clusterDim.z;
      cluster = std::max(cluster, size);
      if (size <= 1 || co_residency) continue;
      co_residency = {.blocks = size, .near = true, .how = "in clusters"};
    }
  }
  co_residency.cluster = cluster;
  return co_residency;
}

std::uint32_t sms_for(const CoResidency& co_residency, std::uint64_t per_sm) {
  if (!co_residency) return 1;
  if (per_sm == 0 || (co_residency.near && co_residency.blocks > kMostInAnyPart)) return kAllSms;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>((co_residency.blocks + per_sm - 1) / per_sm, kAllSms));
}

}  // namespace gpuslice
