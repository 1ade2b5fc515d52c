// The program must not see the helper as its child. The program's wait() does not see a child that was cloned without
// an exit signal, but exec() restores that signal. So there are two children. The first is cloned without an exit
// signal, starts the second, and ends; this process waits for it with __WCLONE. The second, which init then adopts,
// becomes the helper. Until then both share this process's memory, as a child of vfork does, and make only system
// calls.
#include "libgpuslice/image/helper_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "libgpuslice/base/environment.h"

extern char** environ;
/// clone() under a name that ThreadSanitizer does not wrap. ThreadSanitizer takes a child that shares memory for a
/// fork, and after that takes this process for the child.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace gpuslice {

using gpuctl::fail;
using gpuctl::Result;

namespace {

constexpr std::size_t kStackBytes = 64 * 1024;
constexpr int kFirstDescriptor = 3;
/// Descriptors are first moved above this number, so that they do not overwrite each other.
constexpr int kOutOfTheWay = 512;

struct Start {
  const char* path;
  char* const* arguments;
  char* const* environment;
  const int* descriptors;
  int count;
  char* second_stack;
  int* moved;  ///< room for `count`
  pid_t pid;
};

#define GPUSLICE_RAW __attribute__((no_sanitize("address", "thread", "undefined")))

/// dup2() and open() as ThreadSanitizer does not see them: it would take the child's descriptors for this process's.
GPUSLICE_RAW void duplicate(int from, int to) {
  if (from != to) syscall(SYS_dup3, from, to, 0);
}
GPUSLICE_RAW int open_nothing() {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR));
}

/// Runs in the second child.
GPUSLICE_RAW int become_program(void* argument) {
  const Start& start = *static_cast<Start*>(argument);
  setsid();
  for (int i = 0; i < start.count; ++i) {
    start.moved[i] = fcntl(start.descriptors[i], F_DUPFD, kOutOfTheWay);
    if (start.moved[i] < 0) _exit(126);
  }
  const int nothing = open_nothing();
  for (int standard = 0; standard < kFirstDescriptor; ++standard) duplicate(nothing, standard);
  for (int i = 0; i < start.count; ++i) duplicate(start.moved[i], kFirstDescriptor + i);
  syscall(SYS_close_range, kFirstDescriptor + start.count, ~0u, 0);
  syscall(SYS_execve, start.path, start.arguments, start.environment);  // past what watches the program's
  _exit(127);
}

/// Runs in the first child.
GPUSLICE_RAW int start_second(void* argument) {
  Start& start = *static_cast<Start*>(argument);
  start.pid = __clone(become_program, start.second_stack + kStackBytes, CLONE_VM | CLONE_VFORK | SIGCHLD, argument);
  _exit(0);
}

/// Nothing of a caller with fewer rights than the program.
std::vector<char*> environment_without_preload() {
  std::vector<char*> variables;
  for (char** variable = environ; !has_more_rights_than_caller() && variable && *variable; ++variable) {
    if (!std::string_view(*variable).starts_with("LD_PRELOAD=")) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

Result<pid_t> start_unseen(const std::string& path, std::span<const int> descriptors) {
  std::string count = std::to_string(descriptors.size());
  char* arguments[] = {const_cast<char*>(path.c_str()), count.data(), nullptr};
  const std::vector<char*> environment = environment_without_preload();
  std::vector<int> moved(descriptors.size());
  void* stacks = mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stacks == MAP_FAILED) return fail("no memory for a stack");
  auto* first_stack = static_cast<char*>(stacks);
  Start start{.path = path.c_str(),
              .arguments = arguments,
              .environment = environment.data(),
              .descriptors = descriptors.data(),
              .count = static_cast<int>(descriptors.size()),
              .second_stack = first_stack + kStackBytes,
              .moved = moved.data(),
              .pid = -1};
  // The program's signal handlers must not run in the children.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t first = __clone(start_second, first_stack + kStackBytes, CLONE_VM | CLONE_VFORK, &start);
  const int error = errno;
  if (first > 0) {
    while (waitpid(first, nullptr, __WCLONE) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  munmap(stacks, 2 * kStackBytes);
  if (first < 0) return fail("no process: " + std::string(std::strerror(error)));
  if (start.pid < 0) return fail("no process for the program");
  return start.pid;
}

}  // namespace gpuslice
