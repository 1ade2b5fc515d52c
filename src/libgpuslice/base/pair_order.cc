#include "libgpuslice/base/pair_order.h"

#include <array>
#include <cstddef>
#include <cstring>

namespace gpuslice {

namespace {

constexpr std::size_t kBytes = sizeof CUdevResource::_internal_padding;
using Bits = std::array<std::byte, kBytes>;

Bits bits_of(const CUdevResource& resource) {
  Bits bits;
  std::memcpy(bits.data(), resource._internal_padding, kBytes);
  return bits;
}

/// The bits that more than one of them has.
Bits shared_bits(std::span<const CUdevResource> resources) {
  Bits seen{}, shared{};
  for (const CUdevResource& resource : resources) {
    const Bits bits = bits_of(resource);
    for (std::size_t i = 0; i < kBytes; ++i) {
      shared[i] |= seen[i] & bits[i];
      seen[i] |= bits[i];
    }
  }
  return shared;
}

/// The bits of a resource that none of the others has.
Bits own_bits(const CUdevResource& resource, const Bits& shared) {
  Bits own = bits_of(resource);
  for (std::size_t i = 0; i < kBytes; ++i) own[i] &= ~shared[i];
  return own;
}

bool lies_in(const Bits& own, const CUdevResource& group) {
  const Bits all = bits_of(group);
  for (std::size_t i = 0; i < kBytes; ++i)
    if ((own[i] & ~all[i]) != std::byte{}) return false;
  return true;
}

}  // namespace

std::vector<CUdevResource> in_order_of_groups(std::span<const CUdevResource> pairs,
                                              std::span<const CUdevResource> groups) {
  const Bits shared = shared_bits(pairs);
  std::vector<Bits> own;
  for (const CUdevResource& pair : pairs) {
    own.push_back(own_bits(pair, shared));
    if (own.back() == Bits{}) return {};
  }
  std::vector<CUdevResource> ordered;
  std::vector<bool> found(pairs.size());
  for (const CUdevResource& group : groups) {
    unsigned sms = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (!lies_in(own[i], group)) continue;
      if (found[i]) return {};
      found[i] = true;
      ordered.push_back(pairs[i]);
      sms += pairs[i].sm.smCount;
    }
    if (sms != group.sm.smCount) return {};
  }
  return ordered.size() == pairs.size() ? ordered : std::vector<CUdevResource>{};
}

}  // namespace gpuslice
