#pragma once

#include <time.h>

#include <cstdint>

namespace gpuctl::daemon {

/// Nanoseconds of `clock`; CLOCK_MONOTONIC is the one in the stub pages, the same in every process.
inline std::uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace gpuctl::daemon
