// What happens to those who use the driver, or its compiler, after the process has begun to exit.
#pragma once

#include <atomic>
#include <string>

namespace gpuctl::softgpu {

/// Ends the process with abort() and one line on stderr if SOFTGPU_STRICT_EXIT=1, so that a test sees what is undefined
/// with a real driver. Returns otherwise.
void complain_of_late_use(const std::string& what);

/// While one lives, its thread is in the compiler, which is made at the first use and has an exit handler since then:
/// one that runs before those that were registered earlier. A thread that is in the compiler then, or comes later, is
/// complained of.
class CompilerUse {
 public:
  CompilerUse();
  ~CompilerUse();
  CompilerUse(const CompilerUse&) = delete;
  CompilerUse& operator=(const CompilerUse&) = delete;
};

}  // namespace gpuctl::softgpu
