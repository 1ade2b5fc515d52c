// Handles calls of the driver, or of its compiler, after the process has begun to exit, and those for what is not
// there.
#pragma once

#include <atomic>
#include <string>

namespace gpuctl::softgpu {

/// If SOFTGPU_STRICT_EXIT=1, ends the process with abort() and one line on stderr, so that a test sees behaviour that
/// is undefined with a real driver. Otherwise returns.
void complain_of_late_use(const std::string& what);

/// If SOFTGPU_STRICT_STREAMS=1, does the same: a real driver takes a stream's handle for an address. `call`: its name.
void complain_of_lost_stream(const char* call);

/// While an object of this class exists, its thread is in the compiler. The first use makes the compiler, which then
/// registers an exit handler; that handler runs before those registered earlier. Threads that are in the compiler at
/// that time, or come later, are reported by complain_of_late_use().
class CompilerUse {
 public:
  CompilerUse();
  ~CompilerUse();
  CompilerUse(const CompilerUse&) = delete;
  CompilerUse& operator=(const CompilerUse&) = delete;
};

}  // namespace gpuctl::softgpu
