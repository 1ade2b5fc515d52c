#include "gpuctl/doctor/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "ipc/unique_fd.h"

namespace gpuctl::cli {
namespace {

constexpr std::size_t kMost = 64 << 10;
constexpr int kNotStarted = 127;
constexpr std::chrono::milliseconds kToDie{500};

[[noreturn]] void become(const std::vector<std::string>& arguments,
                         const std::vector<std::pair<std::string, std::string>>& environment, int output) {
  for (const auto& [key, value] : environment) ::setenv(key.c_str(), value.c_str(), 1);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  ::_exit(kNotStarted);
}

}  // namespace

std::optional<ChildSaid> ask_child(const std::vector<std::string>& arguments,
                                   const std::vector<std::pair<std::string, std::string>>& environment,
                                   std::chrono::milliseconds patience) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const ipc::UniqueFd from(ends[0]);
  ipc::UniqueFd to(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) become(arguments, environment, to.get());
  to.reset();
  if (child < 0) return std::nullopt;
  ChildSaid said;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool ended = false;
  while (!ended) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd entry{from.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&entry, 1, static_cast<int>(left)) <= 0) break;
    std::array<char, 4096> piece;
    const ssize_t n = ::read(from.get(), piece.data(), piece.size());
    ended = n <= 0;
    if (n > 0 && said.text.size() < kMost) said.text.append(piece.data(), static_cast<std::size_t>(n));
  }
  // One that has closed its output may go on, and one that waits for a device may outlive SIGKILL.
  int status = 0;
  const auto give_up = deadline + kToDie;
  for (bool killed = false; ::waitpid(child, &status, WNOHANG) == 0;) {
    const auto now = std::chrono::steady_clock::now();
    if (!killed && now >= deadline) killed = ::kill(child, SIGKILL) == 0;
    if (now >= give_up) return std::nullopt;
    ::poll(nullptr, 0, 1);
  }
  said.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (!ended || (said.status == kNotStarted && said.text.empty())) return std::nullopt;
  return said;
}

}  // namespace gpuctl::cli
