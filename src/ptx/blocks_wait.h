// Whether blocks of a kernel wait for each other in ordinary launches.
#pragma once

#include <cstdint>

namespace gpuctl::ptx {

/// The numbers are kept in caches.
enum class BlocksWait : std::uint8_t {
  kUnknown = 0,
  kNo = 1,   ///< none of its loops waits for another block
  kYes = 2,  ///< one may
};

}  // namespace gpuctl::ptx
