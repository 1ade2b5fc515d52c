// The ways out of a process that run no exit handlers: exec and _exit. Workers read memory of this process. If that
// memory goes while a worker is on the GPU, MPS reports a fault to every program on the GPU. So these calls wait for
// the workers, as any exit does, and no longer (Contexts::end_all_at_exit). A signal that kills the process leaves no
// such moment. A program that becomes another one in the middle of any kernel is such a fault, also without this
// library (docs/measurements/compat-h100-2026-11-25.txt, run 3), so exec waits for all kernels.
//
// In a child of fork() or vfork() there is nothing to wait for. In a process that never used a GPU these functions only
// pass the call on.
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/driver/dlsym.h"

extern char** environ;

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(gpuslice::real_dlsym(RTLD_NEXT, name));
}

/// The variable arguments as an array, with the null at their end.
std::vector<char*> gather(const char* first, va_list rest) {
  std::vector<char*> arguments = {const_cast<char*>(first)};
  while (arguments.back()) arguments.push_back(va_arg(rest, char*));
  return arguments;
}

}  // namespace

#define GPUSLICE_EXIT extern "C" __attribute__((visibility("default")))

GPUSLICE_EXIT int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  gpuslice::Contexts::end_all_at_exec();
  return static_cast<int>(syscall(SYS_execve, path, arguments, environment));
}

GPUSLICE_EXIT int execv(const char* path, char* const* arguments) noexcept {
  return execve(path, arguments, environ);
}

GPUSLICE_EXIT int execvp(const char* file, char* const* arguments) noexcept {
  gpuslice::Contexts::end_all_at_exec();
  return next<int (*)(const char*, char* const*)>("execvp")(file, arguments);
}

GPUSLICE_EXIT int execl(const char* path, const char* argument, ...) noexcept {
  va_list rest;
  va_start(rest, argument);
  const std::vector<char*> arguments = gather(argument, rest);
  va_end(rest);
  return execv(path, arguments.data());
}

GPUSLICE_EXIT int execlp(const char* file, const char* argument, ...) noexcept {
  va_list rest;
  va_start(rest, argument);
  const std::vector<char*> arguments = gather(argument, rest);
  va_end(rest);
  return execvp(file, arguments.data());
}

GPUSLICE_EXIT int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  gpuslice::Contexts::end_all_at_exec();
  return next<int (*)(const char*, char* const*, char* const*)>("execvpe")(file, arguments, environment);
}

GPUSLICE_EXIT void _exit(int status) {
  gpuslice::Contexts::end_all_at_exit();
  for (;;) syscall(SYS_exit_group, status);
}

GPUSLICE_EXIT void _Exit(int status) {
  _exit(status);
}
