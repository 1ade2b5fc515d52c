// Where the library says what it does: into the file named by GPUSLICE_DEBUG, else nowhere.
#pragma once

#include <chrono>
#include <cstdarg>

namespace gpuslice {

/// printf into the debug file, one line with time, process and thread; does nothing unless GPUSLICE_DEBUG is set.
[[gnu::format(printf, 1, 2)]] void debug(const char* format, ...);

/// True if it is set: for what is expensive to find out.
bool debugging();

/// What something took, for such a line.
struct Stopwatch {
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  long long us() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin).count();
  }
};

}  // namespace gpuslice
