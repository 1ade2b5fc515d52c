#include "gpuctld/host/child_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/one_line.h"
#include "base/read_write.h"
#include "gpuctld/protocol/when_ended.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;
using Descriptor = asio::posix::stream_descriptor;

namespace {

constexpr std::size_t kMostReason = 200;

struct Pipe {
  ipc::UniqueFd read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(std::string("pipe: ") + std::strerror(errno));
  return Pipe{ipc::UniqueFd(ends[0]), ipc::UniqueFd(ends[1])};
}

/// The environment of this process, with `changes` applied.
std::vector<std::string> merged(const std::vector<std::string>& changes) {
  std::vector<std::string> result = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view old(*entry);
    const std::string_view name = old.substr(0, old.find('=') + 1);
    if (std::none_of(changes.begin(), changes.end(), [&](const auto& change) { return change.starts_with(name); }))
      result.emplace_back(old);
  }
  return result;
}

/// Starts it in a process group of its own. It gets nothing of this process except the environment. Returns an errno.
int spawn(pid_t& pid, const std::string& program, std::vector<std::string> words,
          const std::vector<std::string>& environment, int input, int output) {
  words.insert(words.begin(), program);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<std::string> variables = merged(environment);
  std::vector<char*> pointers;
  for (std::string& variable : variables) pointers.push_back(variable.data());
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments.data(), pointers.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

std::string first_line(const std::string& text) {
  return one_line(text.substr(0, std::min(text.find('\n'), kMostReason)));
}

Result<std::shared_ptr<ChildProgram>> ChildProgram::start(asio::io_context& context, const std::string& program,
                                                          const std::vector<std::string>& environment,
                                                          const std::string& input, Done done,
                                                          const std::vector<std::string>& arguments) {
  auto in = make_pipe();
  if (!in) return in.error();
  auto out = make_pipe();
  if (!out) return out.error();
  // All of it fits into the pipe before any of it is read, so this never waits and never raises SIGPIPE.
  if (input.size() > kMostInput) return fail("more than " + std::to_string(kMostInput) + " bytes of input");
  if (!write_all(in->write.get(), input)) return fail(std::string("pipe: ") + std::strerror(errno));
  in->write.reset();
  ::fcntl(out->read.get(), F_SETFL, O_NONBLOCK);

  pid_t pid = 0;
  if (const int error = spawn(pid, program, arguments, environment, in->read.get(), out->write.get()); error != 0)
    return fail(program + ": " + std::strerror(error));
  ipc::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const int error = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return fail(program + ": " + std::strerror(error));
  }
  std::shared_ptr<ChildProgram> child(
      new ChildProgram(context, program, pid, std::move(pidfd), std::move(out->read), std::move(done)));
  child->wait_for_exit();
  child->wait_for_output();
  return child;
}

ChildProgram::ChildProgram(asio::io_context& context, std::string program, pid_t pid, ipc::UniqueFd pidfd,
                           ipc::UniqueFd output, Done done)
    : program_(std::move(program)), pid_(pid), exit_(context), output_(context), done_(std::move(done)) {
  exit_.assign(pidfd.release());
  output_.assign(output.release());
}

ChildProgram::~ChildProgram() {
  if (pid_ == 0) return;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ChildProgram::kill() {
  done_ = nullptr;
  error_code ignored;
  output_.close(ignored);
  if (pid_ != 0) ::kill(-pid_, SIGKILL);  // reaped when exit_ says so
}

void ChildProgram::wait_for_output() {
  output_.async_wait(Descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (!error && self->output_.is_open() && self->read()) self->wait_for_output();
  });
}

void ChildProgram::wait_for_exit() {
  when_ended(exit_, shared_from_this(), [](const auto& self) { self->reap(); });
}

/// Reads what is there; drops what exceeds the bound. False at the end of the output.
bool ChildProgram::read() {
  return read_pieces(output_.native_handle(), [this](std::string_view piece) {
           text_ += piece.substr(0, kMostOutput - text_.size());
           return true;
         }) == ReadEnd::later;
}

void ChildProgram::reap() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = 0;
  error_code ignored;
  exit_.close(ignored);
  if (!done_) return;
  read();
  output_.close(ignored);
  const Done done = std::exchange(done_, nullptr);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return done(std::move(text_));
  const std::string how = WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status))
                                            : "ended by signal " + std::to_string(WTERMSIG(status));
  done(Result<std::string>(fail(program_ + ": " + how + (text_.empty() ? "" : ": " + first_line(text_)))));
}

}  // namespace gpuctl::daemon
