// Writes to the debug file what libgpuslice does during a program's start, stage by stage, with times.
#pragma once

#include <chrono>

namespace gpuslice {

/// While an object of this class lives, `what` (a literal) holds up the program. It writes one line to the debug file
/// when it begins and one when it ends, with milliseconds since the library was loaded, which is the first event in a
/// process. Stages nest.
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
