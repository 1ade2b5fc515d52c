// Parts of the GPU's SMs: resources, their descriptions, and green contexts, which are such parts with streams of their
// own.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <optional>

namespace gpuctl::softgpu {

class Context;

/// SMs from which a program may make a green context. This is the content of a CUdevResource, in bytes that programs
/// must not change.
struct SmResource {
  std::uint64_t sms = 0;    ///< bit = SM
  std::uint64_t split = 0;  ///< number of the split it comes from; 0: none
  bool apart = false;       ///< that split ignored which SMs are near each other
};

/// SMs come in pairs: a part has at least this many, and the size of each group is a multiple of it.
inline constexpr unsigned kSmPair = 2;
/// The most blocks that a cluster has anywhere.
inline constexpr unsigned kMostInCluster = 8;

CUdevResource to_handle(const SmResource& resource);
/// Nothing if it is not a resource of SMs.
std::optional<SmResource> from_handle(const CUdevResource& handle);

/// All SMs of a GPU that has so many.
std::uint64_t first_sms(std::uint32_t count);
/// The size of a group that must have at least `least` SMs, of a GPU with `all`. `apart`: whichever SMs these are. As
/// on an H100, the SMs of a group of a large GPU are near each other otherwise, and a group has 8 or more.
unsigned group_size(unsigned least, unsigned all, bool apart);
/// The SMs of group `index` of `count` groups of `size` SMs that are made of these SMs. As on an H100, SMs that are
/// near each other have numbers that are not, if there are 32 or more: of eight groups of 64 SMs the first one has SMs
/// 0, 1, 16, 17, 32, 33, 48 and 49. Otherwise, and if they are not to be near each other (`apart`), they have numbers
/// that follow each other.
std::uint64_t sms_of_group(std::uint64_t all, unsigned size, unsigned count, unsigned index, bool apart);

/// The object behind a CUdevResourceDesc.
struct ResourceDescription {
  std::uint64_t sms = 0;
  bool apart = false;  ///< SmResource::apart
};

/// A green context. Its streams are streams of the primary context whose kernels are placed only on its SMs.
struct GreenContext {
  Context* context = nullptr;  ///< the primary context, retained until this one is destroyed
  SmResource resource;
  std::atomic<bool> destroyed{false};

  /// The most blocks of a cluster that runs there: those of greater ones need SMs that are near each other.
  unsigned most_in_cluster() const { return resource.apart ? kSmPair : kMostInCluster; }
};

}  // namespace gpuctl::softgpu
