#include "gpuctl/run/run_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/read_write.h"
#include "gpuctl/run/preload_obstacle.h"
#include "gpuctl/text/table.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostProcesses = 256;   // that a look looks at
constexpr std::size_t kMostEntries = 4096;    // of a directory in /proc
constexpr std::size_t kMostMaps = 16u << 20;  // bytes
constexpr Clock::duration kForProgram = 60s, kFirstPause = 250ms, kLongestPause = 4s;

std::string in_proc(pid_t process, const std::string& name) {
  return "/proc/" + std::to_string(process) + '/' + name;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
  if (!open) return names;
  while (const dirent* entry = ::readdir(open.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    if (names.size() == kMostEntries) break;
  }
  return names;
}

std::string link_text(const std::string& path) {
  std::error_code ignored;
  return fs::read_symlink(path, ignored).string();
}

std::string content(const std::string& path, std::size_t most) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  read_pieces(fd, [&](std::string_view piece) { return (text += piece).size() <= most; });
  ::close(fd);
  return text;
}

/// What the process maps; "": it has ended. While one ends the kernel shows a part, and then nothing. Empty: it may not
/// be looked at.
std::optional<std::string> maps_of(pid_t process) {
  std::string text;
  const int fd = ::open(in_proc(process, "maps").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && (errno == EACCES || errno == EPERM)) return std::nullopt;
  if (fd < 0) return text;
  read_pieces(fd, [&](std::string_view piece) { return (text += piece).size() <= kMostMaps; });
  char first = 0;
  if (::lseek(fd, 0, SEEK_SET) != 0 || read_some(fd, &first, 1) != 1) text.clear();
  ::close(fd);
  return text;
}

/// The process, then those below it.
std::vector<pid_t> with_children(pid_t process) {
  std::vector<pid_t> all{process};
  for (std::size_t i = 0; i < all.size() && all.size() < kMostProcesses; ++i)
    for (const std::string& task : names_in(in_proc(all[i], "task"))) {
      std::ifstream children(in_proc(all[i], "task/" + task + "/children"));
      for (pid_t child = 0; children >> child && all.size() < kMostProcesses;) all.push_back(child);
    }
  return all;
}

/// NVIDIA's driver opens this device for CUDA, and not for what only asks about GPUs.
bool has_device(pid_t process) {
  const std::string directory = in_proc(process, "fd");
  return std::ranges::any_of(names_in(directory), [&](const std::string& name) {
    return link_text(directory + '/' + name) == "/dev/nvidia-uvm";
  });
}

bool is_traced() {
  return content("/proc/self/status", 1 << 16).find("\nTracerPid:\t0\n") == std::string::npos;
}

/// Whoever looks for the program by its command line is not to find this process.
void rename_process(pid_t watched) {
  ::prctl(PR_SET_NAME, "gpuctl-watch");
  const std::size_t bytes = content("/proc/self/cmdline", 4u << 20).size();
  const std::string name = "gpuctl: watches " + std::to_string(watched);
  if (bytes <= name.size()) return;
  std::memset(program_invocation_name, 0, bytes);
  std::memcpy(program_invocation_name, name.data(), name.size());
}

/// A child by the kernel alone: nothing that was put into this process, such as a tool that follows processes, sees it
/// begin. Its end is no signal, as the program may have SIGCHLD blocked from the start.
pid_t unseen_child() {
  return static_cast<pid_t>(::syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr));
}

/// Returns when nothing is left to say. The descriptor 0 is that of the watched process.
void watch(pid_t process, const std::string& slice, const std::string& library, const std::string& errors) {
  const auto end = Clock::now() + kForProgram;
  for (auto pause = kFirstPause; Clock::now() < end; pause = std::min(2 * pause, kLongestPause)) {
    pollfd program{STDIN_FILENO, POLLIN, 0};
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(pause).count();
    if (::poll(&program, 1, static_cast<int>(ms)) != 0) return;
    // The program has closed the standard error, or may no longer be looked at.
    if (link_text(in_proc(process, "fd/2")) != errors) return;
    const CudaUse use = cuda_use(process, library);
    if (use.unmanaged != 0) (void)write_all(STDERR_FILENO, unmanaged_line(use.unmanaged, slice) + '\n');
    if (use.unmanaged != 0 || use.managed != 0) return;
  }
}

}  // namespace

CudaUse cuda_use(pid_t process, const std::string& library) {
  CudaUse use;
  std::error_code ignored;
  const std::string real = fs::canonical(library, ignored).string();
  for (const pid_t each : with_children(process)) {
    const std::optional<std::string> maps = maps_of(each);
    if (!maps && use.hidden == 0) use.hidden = each;
    if (!maps || (maps->find("/libcuda.so") == maps->npos && !has_device(each))) continue;
    // Before all else ld.so maps what it preloads.
    const bool preloaded = maps->empty() || maps->find("/libgpuslice.so") != maps->npos ||
                           (!real.empty() && maps->find(real) != maps->npos);
    (preloaded ? use.managed : use.unmanaged) = each;
  }
  return use;
}

std::string unmanaged_line(pid_t process, const std::string& slice) {
  std::string name = content(in_proc(process, "comm"), 64);
  if (name.ends_with('\n')) name.pop_back();
  const std::string obstacle = preload_obstacle(in_proc(process, "exe"));
  return "gpuctl: run: process " + std::to_string(process) + " (" + printable(name) +
         ") uses CUDA without gpuctl's library, so slice '" + printable(slice) +
         "' does not limit it: " + (obstacle.empty() ? "it was started without LD_PRELOAD" : obstacle);
}

void watch_beside(const std::string& slice, const std::string& library) {
  const pid_t process = ::getpid();
  int adopts = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &adopts);
  // Where the program itself is who gets processes without a parent, it would see this one end.
  if (process == 1 || adopts != 0 || is_traced()) return;
  const std::string errors = link_text("/proc/self/fd/2");
  const auto program = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (program < 0) return;
  const pid_t child = unseen_child();
  if (child == 0) {
    // All is closed before the program starts: another process may wait for a pipe or a lock to be free.
    ::dup2(program, STDIN_FILENO);
    ::close(STDOUT_FILENO);
    if (::close_range(3, ~0u, 0) != 0) ::_exit(0);
    ::setsid();
    if (::chdir("/") != 0 || unseen_child() != 0) ::_exit(0);
    rename_process(process);
    watch(process, slice, library, errors);
    ::_exit(0);
  }
  ::close(program);
  while (child > 0 && ::waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) continue;
}

}  // namespace gpuctl::cli
