#include "gpuctl/profile/profile_run.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace gpuctl::cli {

namespace {

using namespace std::chrono_literals;

/// Programs that the program started may outlive it by so long.
constexpr std::chrono::seconds kForRest{10};
constexpr std::chrono::milliseconds kLook{20};

volatile std::sig_atomic_t stop = 0;
volatile pid_t program = 0;

class Recording {
 public:
  Recording(Daemon daemon, std::string slice, const std::function<void(const ipc::Launch&)>& take, std::int64_t& lost)
      : daemon_(std::move(daemon)), slice_(std::move(slice)), take_(take), lost_(lost) {}

  /// The first reply has no launch. The daemon records from then on.
  Outcome<void> start() {
    const auto started = daemon_.start("Record", {{"original", true}});
    if (!started) return started.error();
    if (const auto taken = next(); !taken) return taken.error();
    return {};
  }
  /// Takes what is there, and waits for it for `most`.
  Outcome<void> look(std::chrono::milliseconds most) {
    pollfd waiting{daemon_.connection().fd(), POLLIN, 0};
    while (daemon_.connection().reply_waiting() || ::poll(&waiting, 1, static_cast<int>(most.count())) > 0) {
      if (const auto taken = next(); !taken) return taken.error();
      most = 0ms;
    }
    return {};
  }
  /// Whether the rest of what ended comes with the next reply.
  Outcome<bool> next() {
    const auto reply = daemon_.next();
    if (!reply) return reply.error();
    const auto part = decode_reply(*reply, [&](ipc::Fields& fields) {
      lost_ += fields.integer("lost", 0);
      return ipc::read_list<ipc::Launch>(fields, "launches");
    });
    if (!part) return part.error();
    for (const ipc::Launch& launch : *part)
      if (launch.slice == slice_) take_(launch);
    return part->size() >= ipc::kMostLaunchesInReply;
  }

 private:
  Daemon daemon_;
  std::string slice_;
  const std::function<void(const ipc::Launch&)>& take_;
  std::int64_t& lost_;
};

/// Starts this gpuctl with `run`.
Outcome<pid_t> start(const Context& context, const std::string& slice) {
  std::vector<std::string> words{"gpuctl", "--socket", context.socket, "run", "--slice", slice, "--"};
  words.insert(words.end(), context.command.begin(), context.command.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  context.out.flush();
  const pid_t pid = ::fork();
  if (pid < 0) return Failure{kExitRefused, std::string("profile: no process can be made: ") + std::strerror(errno)};
  if (pid == 0) {
    // Kernels that are compiled beside the program would be measured in their original form at first.
    ::setenv("GPUSLICE_BACKGROUND", "0", 0);
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(kExitRunFailed);
  }
  program = pid;
  if (stop != 0) ::kill(pid, SIGTERM);  // the signal came before `program` was set
  return pid;
}

/// Whether the program ended well.
Outcome<void> judge(int status, const Context& context, const std::string& where) {
  const std::string who = "profile: " + context.command[0];
  if (stop != 0) return Failure{kExitRefused, "profile: stopped; nothing is written"};
  if (WIFSIGNALED(status))
    return Failure{kExitRefused, who + " was ended by signal " + std::to_string(WTERMSIG(status)) + ' ' + where +
                                     "; nothing is written"};
  if (WEXITSTATUS(status) != 0)
    return Failure{kExitRefused, who + " ended with status " + std::to_string(WEXITSTATUS(status)) + ' ' + where +
                                     "; nothing is written"};
  return {};
}

Outcome<bool> anybody_in(const Context& context, const std::string& slice) {
  const auto reply = ask(context, "GetSlice", {{"path", slice}});
  if (!reply) return reply.error();
  const auto found =
      decode_reply(*reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::Client>(fields, "clients"); });
  if (!found) return found.error();
  return !found->empty();
}

}  // namespace

Outcome<SliceForProfile> SliceForProfile::make(const Context& context, const std::string& parent) {
  const std::string path = (parent == "/" ? "" : parent + '/') + "profile-" + std::to_string(::getpid());
  const auto made = ask(context, "CreateSlice", {{"path", path}, {"settings", {{"policy", "fcfs"}}}});
  if (!made) return made.error();
  return SliceForProfile(context, path);
}

SliceForProfile::SliceForProfile(SliceForProfile&& other) noexcept
    : context_(other.context_), path_(std::exchange(other.path_, {})) {}

SliceForProfile::~SliceForProfile() {
  if (!path_.empty()) static_cast<void>(ask(*context_, "DeleteSlice", {{"path", path_}}));
}

Outcome<void> SliceForProfile::limit(std::int64_t sms) {
  const auto set = ask(*context_, "SetSlice", {{"path", path_}, {"settings", {{"max", sms}}}});
  if (!set) return set.error();
  return {};
}

void end_profile_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    stop = 1;
    if (program > 0) ::kill(program, signal);
  };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

Outcome<void> run_recorded(const Context& context, const std::string& slice, const std::string& where,
                           const std::function<void(const ipc::Launch&)>& take, std::int64_t& lost) {
  Outcome<Daemon> daemon = Daemon::connect(context);
  if (!daemon) return daemon.error();
  Recording recording(std::move(*daemon), slice, take, lost);
  if (const auto started = recording.start(); !started) return started.error();
  const Outcome<pid_t> pid = start(context, slice);
  if (!pid) return pid.error();
  int status = 0;
  Outcome<void> recorded;
  for (pid_t ended = 0; ended != *pid;) {
    ended = ::waitpid(*pid, &status, recorded ? WNOHANG : 0);  // without a daemon the program still ends
    if (ended < 0 && errno != EINTR) break;
    if (ended != *pid && recorded) recorded = recording.look(kLook);
  }
  program = 0;
  if (!recorded) return recorded.error();
  if (const auto well = judge(status, context, where); !well) return well.error();

  const auto until = std::chrono::steady_clock::now() + kForRest;
  for (bool anybody = true; anybody; std::this_thread::sleep_for(kLook)) {
    const Outcome<bool> there = anybody_in(context, slice);
    if (!there) return there.error();
    anybody = *there;
    if (anybody && std::chrono::steady_clock::now() > until)
      return Failure{kExitRefused, "profile: programs that " + context.command[0] + " started are still in slice " +
                                       slice + "; end them and delete the slice; nothing is written"};
  }
  // The first of these may have been made before the last program was gone.
  for (int whole = 0; whole < 2;) {
    const auto more = recording.next();
    if (!more) return more.error();
    whole += !*more;
  }
  return {};
}

}  // namespace gpuctl::cli
