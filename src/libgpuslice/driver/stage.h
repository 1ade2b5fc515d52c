// A program's start, stage by stage: what libgpuslice does in it, from when to when. For GPUSLICE_DEBUG alone.
#pragma once

#include <chrono>

namespace gpuslice {

/// While it lives the program is held up by `what` (a literal). Two lines in the debug file, when it begins and when it
/// ends, with milliseconds since the library was loaded, which is the first thing that happens in a process. Stages lie
/// within each other.
class Stage {
 public:
  explicit Stage(const char* what);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  const char* what_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace gpuslice
