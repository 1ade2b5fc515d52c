#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace gpuctl::daemon {

/// Nanoseconds of `clock`; CLOCK_MONOTONIC is the one in the stub pages, the same in every process.
inline std::uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

/// A time of now_ns(), or from a stub page, as sched::Time.
inline std::chrono::nanoseconds instant(std::uint64_t ns) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
}

/// Of the clock that people read.
inline std::int64_t epoch_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace gpuctl::daemon
