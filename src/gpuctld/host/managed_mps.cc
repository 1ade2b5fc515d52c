#include "gpuctld/host/managed_mps.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/installed.h"
#include "gpuctld/host/mps.h"
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

}  // namespace

bool ManagedMps::wait(const void* who, std::function<void()> then) {
  if (stopped_ || mps_active()) return false;
  if (!starts_) start();
  if (!starts_) return false;
  waiting_.insert_or_assign(who, std::move(then));
  return true;
}

void ManagedMps::start() {
  if (steady_clock::now() < next_try_) return;
  const std::string directory = mps_pipe_directory(), program = mps_control_program(), library = preloaded_library();
  ::mkdir(directory.c_str(), 0755);  // MPS makes none
  const char* before = std::getenv("LD_PRELOAD");
  const std::string preload = library + (before == nullptr || *before == '\0' ? "" : ":" + std::string(before));
  const std::vector<std::string> environment{"CUDA_MPS_PIPE_DIRECTORY=" + directory, "LD_PRELOAD=" + preload,
                                             "GPUCTL_MPS_SERVER=" + socket_};
  auto child = ChildProgram::start(context_, program, environment, "",
                                   [this](const Result<std::string>& output) { started(output); }, {"-d"});
  if (child) return void(starts_ = std::move(*child));
  started(child.error());
}

void ManagedMps::started(const Result<std::string>& output) {
  starts_.reset();
  ours_ = output && mps_active();
  if (ours_) {
    log_("started MPS, with libgpuslice inside");
    used_ = steady_clock::now();
  } else {
    pause_ = std::clamp(2 * pause_, kMpsFirstPause, kMpsLongestPause);
    next_try_ = steady_clock::now() + pause_;
    log_("MPS was not started: " + (output ? "its control daemon is not there" : output.error().message) +
         "; programs take turns");
  }
  if (ours_) look();
  for (const auto& [who, then] : std::exchange(waiting_, {})) then();
}

/// Watches it, while it is ours.
void ManagedMps::look() {
  const auto now = steady_clock::now();
  if (in_use_) used_ = now;
  if (!mps_active()) {
    ours_ = false;
    if (std::exchange(quits_, nullptr)) return log_("ended MPS, which nobody used");
    log_("MPS has ended; it is started again for the next program");
    pause_ = std::clamp(2 * pause_, kMpsFirstPause, kMpsLongestPause);
    next_try_ = now + pause_;
    return;
  }
  if (now - used_ >= idle_ && !quits_) {
    auto quit = start_mps_control(context_, mps_control_program(), mps_pipe_directory(), "quit",
                                  [](const Result<std::string>&) {});
    if (quit) quits_ = std::move(*quit);
  }
  timer_.expires_after(kLookAtMps);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) look();
  });
}

void ManagedMps::note_use(bool used) {
  in_use_ = used;
}

void ManagedMps::stop() {
  stopped_ = true;
  waiting_.clear();
  timer_.cancel();
  if (starts_) starts_->kill();
  if (quits_) quits_->kill();
}

}  // namespace gpuctl::daemon
