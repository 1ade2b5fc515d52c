// Programs that a program starts in a slice without the library, because they have an environment of their own or the
// like. Only who looks while they run can know of them.
#pragma once

#include <sys/types.h>

#include <string>

namespace gpuctl::cli {

/// Whether `process` or one below it uses CUDA.
struct CudaUse {
  pid_t managed = 0;    ///< one that does, with the library; 0: none
  pid_t unmanaged = 0;  ///< one that does, without
  pid_t hidden = 0;     ///< one that may not be looked at
};
CudaUse cuda_use(pid_t process, const std::string& library);

/// What is said of such a process.
std::string unmanaged_line(pid_t process, const std::string& slice);

/// Leaves a process that says on the standard error if this process, or one below it, uses CUDA without `library` in
/// the first minute. It ends with the program, which is about to become this process, or before, and is nobody's child:
/// no process waits for it, and no signal of a terminal reaches it. It holds no descriptor but the standard error, and
/// that as long as the program does. Leaves none where it could be noticed, or where the system does not allow it; the
/// caller leaves it out where a library was put into this process, which could be a tool that follows processes.
void watch_beside(const std::string& slice, const std::string& library);

}  // namespace gpuctl::cli
