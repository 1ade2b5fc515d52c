// Durations and instants, as policies and metrics count them. (A time.h here would hide that of the system.)
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace gpuctl::sched {

/// A duration, or an instant counted from the start of the caller's clock.
using Time = std::chrono::nanoseconds;
inline constexpr Time kNever{std::numeric_limits<std::int64_t>::max()};

}  // namespace gpuctl::sched
