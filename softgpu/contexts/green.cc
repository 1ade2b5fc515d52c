#include "softgpu/contexts/green.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "softgpu/table/device_limits.h"
#include "softgpu/table/table_layout.h"

namespace gpuctl::softgpu {

namespace {

constexpr unsigned kLarge = 64, kScattered = 32;  // SMs

/// Takes the pair with the lowest numbers out of a set that has one.
std::uint64_t take_pair(std::uint64_t* from) {
  std::uint64_t left = *from;
  for (unsigned i = 0; i < kSmPair; ++i) left &= left - 1;
  return std::exchange(*from, left) & ~left;
}

}  // namespace

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

unsigned group_size(unsigned least, unsigned all, bool apart) {
  constexpr unsigned kNear = 8;
  return round_up(std::max(least, !apart && all >= kLarge ? kNear : kSmPair), kSmPair);
}

std::uint64_t sms_of_group(std::uint64_t all, unsigned size, unsigned count, unsigned index, bool apart) {
  const unsigned pairs = static_cast<unsigned>(std::popcount(all)) / kSmPair, of_group = size / kSmPair;
  const bool scattered = !apart && pairs * kSmPair >= kScattered;
  std::uint64_t taken = 0;
  for (unsigned pair = 0; pair < pairs; ++pair) {
    const std::uint64_t its = take_pair(&all);
    if ((scattered ? pair % count == index && pair / count < of_group : pair / of_group == index)) taken |= its;
  }
  return taken;
}

}  // namespace gpuctl::softgpu
