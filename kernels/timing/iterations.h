// How many iterations of a loop take a given time, found by trying.
#pragma once

#include <cstdint>
#include <functional>

namespace gpuctl::bench {

inline constexpr std::uint32_t kMostIterations = 1u << 28;

/// The number of iterations (1 to kMostIterations) that brings `measure` near `target_us`. `measure` returns the
/// microseconds that something with so many iterations takes: a fixed cost, and the same for each iteration. It may be
/// off by some microseconds, and is never asked for much more than 8 times its fixed cost, 1 ms, or twice the target,
/// whichever is greatest. Throws Failure when the time does not depend on the iterations.
std::uint32_t iterations_for(const std::function<double(std::uint32_t)>& measure, double target_us);

}  // namespace gpuctl::bench
