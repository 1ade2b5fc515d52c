// When a run's measured launches begin, so that several programs can begin together.
#pragma once

#include <atomic>
#include <cstdint>

namespace gpuctl::bench {

struct Start {
  std::int64_t at_ns = 0;  ///< CLOCK_MONOTONIC; 0: at once
  bool on_input = false;   ///< say "ready" on stderr, then read at_ns as a line from standard input
};

/// Returns at that time, or sooner when `stop` turns true: the time of the start. One that came too late is kept, so
/// that launches stay in step with those of other programs. Throws Failure when the input holds no time.
std::int64_t wait_for(const Start& start, const std::atomic<bool>& stop);

}  // namespace gpuctl::bench
