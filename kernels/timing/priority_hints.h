// Priority hints, given to libgpuslice if the program runs under it.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace gpuctl::bench {

class PriorityHints {
 public:
  /// Hints are drawn from `least` to `greatest`. Throws Failure if libgpuslice is not in this process.
  PriorityHints(int least, int greatest, std::uint64_t seed);

  /// Draws a hint and gives it; returns when it counts. Throws Failure if it is refused.
  int give();

 private:
  int (*set_)(int priority) = nullptr;
  int least_;
  std::uint32_t count_;
  Random random_;
};

}  // namespace gpuctl::bench
