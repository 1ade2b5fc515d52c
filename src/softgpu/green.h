// Parts of the GPU's SMs: resources, what they are described by, and green contexts, which are such parts with streams
// of their own.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <optional>

namespace gpuctl::softgpu {

class Context;

/// SMs that a program may make a green context of. What a CUdevResource holds, in bytes that programs leave alone.
struct SmResource {
  std::uint64_t sms = 0;    ///< bit = SM
  std::uint64_t split = 0;  ///< which split it comes from; 0: from none
};

/// SMs come in pairs: the fewest that a part may have, and what the size of each group is a multiple of.
inline constexpr unsigned kSmPair = 2;

CUdevResource to_handle(const SmResource& resource);
/// Nothing where it is not a resource of SMs.
std::optional<SmResource> from_handle(const CUdevResource& handle);

/// All SMs of a GPU that has so many.
std::uint64_t first_sms(std::uint32_t count);
/// Takes the `count` SMs of the lowest numbers out of a set that has as many.
std::uint64_t take_sms(std::uint64_t* from, unsigned count);
/// How large groups of at least that many SMs are.
unsigned group_size(unsigned least);

/// What a CUdevResourceDesc describes.
struct ResourceDescription {
  std::uint64_t sms = 0;
};

/// Its streams are streams of the primary context whose kernels are placed on its SMs alone.
struct GreenContext {
  Context* context = nullptr;  ///< the primary one, retained until this is destroyed
  SmResource resource;
  std::atomic<bool> destroyed{false};
};

}  // namespace gpuctl::softgpu
