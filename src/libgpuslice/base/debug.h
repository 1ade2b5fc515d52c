// The debug file, which GPUSLICE_DEBUG names.
#pragma once

#include <chrono>
#include <cstdarg>

namespace gpuslice {

/// printf into the debug file, one line with time, process and thread; does nothing unless GPUSLICE_DEBUG is set.
[[gnu::format(printf, 1, 2)]] void debug(const char* format, ...);

/// Whether it is set. For debug lines whose content is expensive to compute.
bool debugging();

/// Measures how long something took, for such a line.
struct Stopwatch {
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  long long us() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  }
};

}  // namespace gpuslice
