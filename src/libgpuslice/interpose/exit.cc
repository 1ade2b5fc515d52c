// The ways out of a process that run no exit handlers: exec and _exit. Workers read memory of this process. If that
// memory goes while a worker is on the GPU, MPS reports a fault to every program on the GPU. So these calls wait for
// the workers, as any exit does, and no longer (Contexts::end_all_at_exit). A signal that kills the process leaves no
// such moment. A program that becomes another one in the middle of any kernel is such a fault, also without this
// library (bench/results/compatibility-h100-2026-11-25.txt, run 3), so exec waits for all kernels.
//
// An exec that fails returns, and the program goes on in its slice (Contexts::exec_failed). What can be seen to fail
// waits for nothing.
//
// In a child of fork() or vfork() there is nothing to wait for, and nothing of the parent is touched. posix_spawn() and
// what the C library builds on it come by no function of ours. In a process that never used a GPU these functions only
// pass the call on. All may be called in a signal handler, so they take no memory and no lock that is not bounded.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/dlsym.h"

extern char** environ;

namespace {

/// The next functions in symbol order: the C library's, or those of a tool that has to see what the program becomes, as
/// compute-sanitizer and ncu do. They are looked up when the library is loaded: a child of fork() may find the loader's
/// lock held by a thread that it does not have.
struct Next {
  int (*execve)(const char*, char* const*, char* const*);
  int (*execveat)(int, const char*, char* const*, char* const*, int);  // null before glibc 2.34
  int (*execvpe)(const char*, char* const*, char* const*);
  int (*fexecve)(int, char* const*, char* const*);
};

const Next& next() {
  static const Next functions = [] {
    Next found{};
    const auto look_up = [](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(gpuslice::real_dlsym(RTLD_NEXT, name));
    };
    look_up(found.execve, "execve");
    look_up(found.execveat, "execveat");
    look_up(found.execvpe, "execvpe");
    look_up(found.fexecve, "fexecve");
    return found;
  }();
  return functions;
}

__attribute__((constructor)) void look_up_early() {
  next();
}

/// Whether the system may run this file. Some that it does not run are found out by trying.
bool may_run(int directory, const char* path, int flags = 0) {
  struct stat about {};
  return fstatat(directory, path, &about, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) == 0 &&
         S_ISREG(about.st_mode) && (about.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
}

/// Whether there is such a file where execvp() looks for it.
bool may_run_by_search(const char* file) {
  if (!file || std::strchr(file, '/')) return may_run(AT_FDCWD, file);
  const char* directory = std::getenv("PATH");
  if (!directory) directory = "/bin:/usr/bin";
  for (;; ++directory) {
    const char* const end = strchrnul(directory, ':');
    char path[PATH_MAX];
    const int length = static_cast<int>(end - directory);
    const int written = std::snprintf(path, sizeof path, "%.*s%s%s", length, directory, length > 0 ? "/" : "", file);
    if (written < PATH_MAX && may_run(AT_FDCWD, path)) return true;
    if (*end == '\0') return false;
    directory = end;
  }
}

/// Makes a call that does not return if the process becomes another program. `may_succeed()`: whether it can.
template <class May, class Call>
int become(May may_succeed, Call call) {
  const bool begun = gpuslice::Contexts::any_managed() && may_succeed() && gpuslice::Contexts::begin_exec();
  const int result = call();
  const int error = errno;
  if (begun) gpuslice::Contexts::exec_failed();
  errno = error;
  return result;
}

/// Calls `use` with the variable arguments up to their null as an array, and with the environment: what comes after
/// them, or the process's.
template <class Use>
int with_arguments(const char* first, va_list rest, bool environment_follows, Use use) {
  std::size_t count = 1;
  va_list counted;
  va_copy(counted, rest);
  for (const char* one = first; one; one = va_arg(counted, const char*)) ++count;
  va_end(counted);
  auto** const arguments = static_cast<char**>(__builtin_alloca(count * sizeof(char*)));
  arguments[0] = const_cast<char*>(first);
  for (std::size_t i = 0; arguments[i]; ++i) arguments[i + 1] = va_arg(rest, char*);
  return use(arguments, environment_follows ? va_arg(rest, char**) : environ);
}

}  // namespace

#define GPUSLICE_EXIT extern "C" __attribute__((visibility("default")))

GPUSLICE_EXIT int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return become([path] { return may_run(AT_FDCWD, path); },
                [&] { return next().execve(path, arguments, environment); });
}

GPUSLICE_EXIT int execveat(int directory, const char* path, char* const* arguments, char* const* environment,
                           int flags) noexcept {
  return become([&] { return may_run(directory, path, flags); },
                [&] {
                  if (next().execveat) return next().execveat(directory, path, arguments, environment, flags);
                  return static_cast<int>(syscall(SYS_execveat, directory, path, arguments, environment, flags));
                });
}

GPUSLICE_EXIT int fexecve(int file, char* const* arguments, char* const* environment) noexcept {
  return become([file] { return may_run(file, "", AT_EMPTY_PATH); },
                [&] { return next().fexecve(file, arguments, environment); });
}

GPUSLICE_EXIT int execv(const char* path, char* const* arguments) noexcept {
  return execve(path, arguments, environ);
}

GPUSLICE_EXIT int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  return become([file] { return may_run_by_search(file); },
                [&] { return next().execvpe(file, arguments, environment); });
}

GPUSLICE_EXIT int execvp(const char* file, char* const* arguments) noexcept {
  return execvpe(file, arguments, environ);
}

GPUSLICE_EXIT int execl(const char* path, const char* argument, ...) noexcept {
  va_list rest;
  va_start(rest, argument);
  const int result = with_arguments(argument, rest, false, [path](char** arguments, char** environment) {
    return execve(path, arguments, environment);
  });
  va_end(rest);
  return result;
}

GPUSLICE_EXIT int execle(const char* path, const char* argument, ...) noexcept {
  va_list rest;
  va_start(rest, argument);
  const int result = with_arguments(argument, rest, true, [path](char** arguments, char** environment) {
    return execve(path, arguments, environment);
  });
  va_end(rest);
  return result;
}

GPUSLICE_EXIT int execlp(const char* file, const char* argument, ...) noexcept {
  va_list rest;
  va_start(rest, argument);
  const int result = with_arguments(argument, rest, false, [file](char** arguments, char** environment) {
    return execvpe(file, arguments, environment);
  });
  va_end(rest);
  return result;
}

GPUSLICE_EXIT void _exit(int status) {
  gpuslice::Contexts::end_all_at_exit();
  for (;;) syscall(SYS_exit_group, status);
}

GPUSLICE_EXIT void _Exit(int status) {
  _exit(status);
}
