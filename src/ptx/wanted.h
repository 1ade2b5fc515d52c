// Which forms the rewriter is to make of kernels.
#pragma once

namespace gpuctl::ptx {

/// The numbers are kept in caches.
enum class Wanted {
  kPersistent = 0,
  kSliced = 1,
};
/// The last of them.
inline constexpr Wanted kLastWanted = Wanted::kSliced;

}  // namespace gpuctl::ptx
