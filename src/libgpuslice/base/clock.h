// The clock for all times in this process, except those of the GPU.
#pragma once

#include <cstdint>
#include <ctime>

namespace gpuslice {

/// CLOCK_MONOTONIC in ns.
inline std::uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace gpuslice
