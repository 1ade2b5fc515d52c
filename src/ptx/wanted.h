// Which forms the rewriter is to make of kernels.
#pragma once

namespace gpuctl::ptx {

/// The numbers are kept in caches.
enum class Wanted {
  kPersistent = 0,  ///< a kernel that could be guarded is opaque, for the same reason
  kPersistentOrGuarded = 1,
  kSliced = 2,
};
/// The last of them.
inline constexpr Wanted kLastWanted = Wanted::kSliced;

}  // namespace gpuctl::ptx
