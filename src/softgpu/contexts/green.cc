#include "softgpu/contexts/green.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "softgpu/table/device_limits.h"
#include "softgpu/table/table_layout.h"

namespace gpuctl::softgpu {

static_assert(sizeof(SmResource) <= sizeof CUdevResource::_internal_padding);

CUdevResource to_handle(const SmResource& resource) {
  CUdevResource handle{};
  handle.type = CU_DEV_RESOURCE_TYPE_SM;
  handle.sm.smCount = static_cast<unsigned>(std::popcount(resource.sms));
#if CUDA_VERSION >= 13000
  handle.sm.minSmPartitionSize = handle.sm.smCoscheduledAlignment = kSmPair;
#endif
  std::memcpy(handle._internal_padding, &resource, sizeof resource);
  return handle;
}

std::optional<SmResource> from_handle(const CUdevResource& handle) {
  if (handle.type != CU_DEV_RESOURCE_TYPE_SM) return std::nullopt;
  SmResource resource;
  std::memcpy(&resource, handle._internal_padding, sizeof resource);
  return resource;
}

std::uint64_t first_sms(std::uint32_t count) {
  return count >= kMaxSms ? kAnySm : (std::uint64_t{1} << count) - 1;
}

std::uint64_t take_sms(std::uint64_t* from, unsigned count) {
  std::uint64_t taken = 0;
  for (; count > 0; --count) {
    const std::uint64_t lowest = *from & (~*from + 1);
    taken |= lowest;
    *from &= ~lowest;
  }
  return taken;
}

unsigned group_size(unsigned least, unsigned all, bool apart) {
  constexpr unsigned kNear = 8, kLarge = 64;
  return round_up(std::max(least, !apart && all >= kLarge ? kNear : kSmPair), kSmPair);
}

}  // namespace gpuctl::softgpu
