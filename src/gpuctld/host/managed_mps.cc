#include "gpuctld/host/managed_mps.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/installed.h"
#include "gpuctld/config/trusted_file.h"
#include "gpuctld/host/mps_control.h"

namespace gpuctl::daemon {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookAtMps{200};

/// libgpuslice.so beside the running program in a build tree, else the installed one.
std::string preloaded_library() {
  std::error_code error;
  const std::filesystem::path self = own_executable();
  const auto beside = self.parent_path().parent_path() / "libgpuslice" / "libgpuslice.so";
  if (!self.empty() && std::filesystem::exists(beside, error)) return beside.string();
  const auto directory = std::filesystem::path(GPUCTL_SOFTGPU_DIR).parent_path();
  return installed(self, GPUCTL_SBINDIR, directory, "libgpuslice.so").string();
}

/// For the control daemon and its servers.
std::vector<std::string> environment_of(const ManagedMps::Place& place) {
  const char* before = std::getenv("LD_PRELOAD");
  const std::string more = before == nullptr || *before == '\0' ? "" : ":" + std::string(before);
  return {"CUDA_MPS_PIPE_DIRECTORY=" + place.directory, "CUDA_MPS_LOG_DIRECTORY=" + place.directory,
          "LD_PRELOAD=" + preloaded_library() + more, "GPUCTL_MPS_SERVER=" + place.socket,
          // It is no program of a slice.
          "GPUCTL_SOCKET=", "GPUCTL_SLICE="};
}

/// MPS makes none. Nobody else may have made it, as in a directory for all.
Result<void> make_directory(const std::string& directory) {
  for (const std::string& path : {std::filesystem::path(directory).parent_path().string(), directory}) {
    if (::mkdir(path.c_str(), 0755) == 0) ::chmod(path.c_str(), 0755);  // whatever the umask
    if (const auto trusted = check_trusted_directory(path, ::geteuid()); !trusted) return trusted.error();
  }
  return {};
}

}  // namespace

ManagedMps::ManagedMps(boost::asio::io_context& context, Place place, Log log, std::chrono::milliseconds idle)
    : context_(context),
      timer_(context),
      place_(std::move(place)),
      log_(std::move(log)),
      idle_(idle),
      watch_("/proc", ::geteuid()) {
  if (active()) serve();
}

bool ManagedMps::active() {
  return watch_.active(place_.directory);
}

bool ManagedMps::wait(const void* who, std::function<void()> then) {
  if (stopped_) return false;
  const bool runs = active();
  if (runs && !quits_) return false;
  if (!runs && !starts_) start();
  if (!runs && !starts_) return false;
  waiting_.insert_or_assign(who, std::move(then));
  return true;
}

void ManagedMps::start() {
  if (steady_clock::now() < next_try_) return;
  const std::string program = mps_control_program();
  if (::access(program.c_str(), X_OK) != 0) return;
  if (const auto made = make_directory(place_.directory); !made) return started(made.error());
  std::vector<std::string> arguments{"-d"};
  if (serves_several_users(program)) arguments.emplace_back(kSeveralUsers);
  auto child = ChildProgram::start(
      context_, program, environment_of(place_), "", [this](const Result<std::string>& output) { started(output); },
      arguments);
  if (child) return void(starts_ = std::move(*child));
  started(child.error());
}

void ManagedMps::started(const Result<std::string>& output) {
  starts_.reset();
  if (output && active()) {
    log_("started MPS" + place_.whose + ", with libgpuslice inside");
    trouble_.clear();
    serve();
  } else {
    put_off();
    trouble_ = output ? "its control daemon is not there" : output.error().message;
    log_("MPS" + place_.whose + " was not started: " + trouble_ + "; programs take turns");
  }
  answer();
}

void ManagedMps::answer() {
  for (const auto& [who, then] : std::exchange(waiting_, {})) then();
}

void ManagedMps::put_off() {
  pause_ = std::clamp(2 * pause_, kMpsFirstPause, kMpsLongestPause);
  next_try_ = steady_clock::now() + pause_;
}

void ManagedMps::serve() {
  quits_ = false;
  began_ = used_ = steady_clock::now();
  user_.reset();
  const auto control = mps_process_in(place_.directory, "/proc", ::geteuid());
  several_users_ = control && was_started_with(*control, kSeveralUsers);
  look();
}

/// Watches it, while it runs.
void ManagedMps::look() {
  const auto now = steady_clock::now();
  if (in_use_) used_ = now;
  if (!active()) {
    if (now - began_ >= kMpsLongestPause) pause_ = {};
    if (!std::exchange(quits_, false)) {
      put_off();
      return log_("MPS" + place_.whose + " has ended; it is started again for the next program");
    }
    log_("ended MPS" + place_.whose + ", which nobody used");
    if (!waiting_.empty()) start();
    if (!starts_) answer();
    return;
  }
  if (now - used_ >= idle_ && !asks_) end_unless_used();
  timer_.expires_after(kLookAtMps);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) look();
  });
}

bool ManagedMps::admits(std::uint32_t uid) {
  if (quits_ || !active()) return false;
  if (several_users_) return true;
  if (::geteuid() != 0) return uid == ::geteuid();
  const auto now = steady_clock::now();
  if (user_ && *user_ != uid && (in_use_ || now - used_ < kMpsFirstPause)) return false;
  user_ = uid;
  used_ = now;  // it is about to come
  return true;
}

void ManagedMps::ask(const std::string& command, std::function<void(const std::string& output)> next) {
  auto child = start_mps_control(context_, mps_control_program(), place_.directory, command,
                                 [this, next = std::move(next)](const Result<std::string>& output) {
                                   asks_.reset();
                                   output ? next(*output) : keep();
                                 });
  if (child) asks_ = std::move(*child);
}

/// It is not ended now. Whether it is used is asked again later.
void ManagedMps::keep() {
  used_ = steady_clock::now();
  quits_ = false;
  answer();
}

/// Others than programs of slices may have come to it.
void ManagedMps::end_unless_used() {
  ask("get_server_list", [this](const std::string& output) { ask_clients(pids_in(output)); });
}

void ManagedMps::ask_clients(std::vector<std::int32_t> servers) {
  if (steady_clock::now() - used_ < idle_) return;
  if (servers.empty()) {
    used_ = steady_clock::now();  // if it is there after a while, it is asked again
    ask("quit", [](const std::string&) {});
    quits_ = asks_ != nullptr;
    return;
  }
  const std::int32_t server = servers.back();
  servers.pop_back();
  ask("get_client_list " + std::to_string(server),
      [this, servers](const std::string& output) { pids_in(output).empty() ? ask_clients(servers) : keep(); });
}

void ManagedMps::note_use(bool used) {
  in_use_ = used;
}

void ManagedMps::stop() {
  stopped_ = true;
  waiting_.clear();
  timer_.cancel();
  for (const auto& child : {starts_, asks_})
    if (child) child->kill();
}

}  // namespace gpuctl::daemon
