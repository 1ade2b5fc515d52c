#include "gpuctld/host/mapped.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/read_write.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

using std::chrono::steady_clock;

namespace {

constexpr std::string_view kLibrary = "/libgpuslice.so", kDriver = "/libcuda.so";

Mapped mapped_in(const std::string& file) {
  Mapped mapped;
  std::ifstream maps(file);
  for (std::string line; !mapped.library && std::getline(maps, line);) {
    mapped.library = line.find(kLibrary) != line.npos;
    mapped.driver |= line.find(kDriver) != line.npos;
  }
  return mapped;
}

/// Reads the file in a child. Who reads the mappings of a process waits while it changes them, which that process can
/// let take without end. But that wait ends by SIGKILL.
Mapped mapped_in(const std::string& file, std::chrono::milliseconds patience) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const ipc::UniqueFd from(ends[0]);
  ipc::UniqueFd to(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    const Mapped mapped = mapped_in(file);
    (void)!::write(to.get(), &mapped, sizeof mapped);
    ::_exit(0);
  }
  to.reset();
  Mapped mapped;
  pollfd answer{from.get(), POLLIN, 0};
  if (::poll(&answer, 1, static_cast<int>(patience.count())) <= 0 || !read_exactly(from.get(), &mapped, sizeof mapped))
    mapped = {};
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return mapped;
}

/// Of one user.
struct Turns {
  std::deque<std::int32_t> left;
  steady_clock::duration took{};
};

}  // namespace

std::map<std::int32_t, Mapped> mapped_by(const std::vector<GpuUser>& users, const MapsPatience& patience,
                                         const std::string& proc) {
  std::map<std::uint32_t, Turns> turns;
  for (const GpuUser& user : users) turns[user.uid].left.push_back(user.pid);
  std::map<std::int32_t, Mapped> all;
  for (const auto until = steady_clock::now() + patience.all; !turns.empty() && steady_clock::now() < until;) {
    const auto next = std::ranges::min_element(turns, {}, [](const auto& one) { return one.second.took; });
    auto& [left, took] = next->second;
    const auto began = steady_clock::now();
    all[left.front()] = mapped_in(proc + "/" + std::to_string(left.front()) + "/maps", patience.one);
    took += steady_clock::now() - began;
    left.pop_front();
    if (left.empty()) turns.erase(next);
  }
  return all;
}

}  // namespace gpuctl::daemon
