// Host time as the benchmark uses it: nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <time.h>

#include <cerrno>
#include <cstdint>

namespace gpuctl::bench {

inline std::int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

/// Returns at that time, or at once when a signal comes first.
inline void sleep_until_ns(std::int64_t when) {
  const timespec time = {.tv_sec = when / 1'000'000'000, .tv_nsec = when % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

}  // namespace gpuctl::bench
