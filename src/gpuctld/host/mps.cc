#include "gpuctld/host/mps.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/mps_home.h"
#include "gpuctld/config/trusted_file.h"
#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {

namespace {

/// Whether all user ids of the process are trusted. A user can start a set-uid program under any name, but its real
/// user id stays the user's.
bool is_process_trusted(std::int32_t pid, const std::string& proc, uid_t own) {
  const auto users = users_of(pid, proc);
  return users && is_trusted(users->real, own) && is_trusted(users->effective, own) && is_trusted(users->saved, own);
}

}  // namespace

bool mps_active() {
  static MpsWatch watch("/proc", ::geteuid());
  return watch.active(mps_pipe_directory());
}

std::string mps_pipe_directory() {
  const char* directory = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return directory != nullptr && *directory != '\0' ? mps_home(directory) : "/tmp/nvidia-mps";
}

bool is_mps_server(std::int32_t pid, const std::string& pipe_directory, const std::string& proc) {
  const auto control = mps_process_in(pipe_directory, proc, ::geteuid());
  std::ifstream status(proc + "/" + std::to_string(pid) + "/status");
  for (std::string line; control && std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + 5) == *control;
  return false;
}

std::string mps_control_program() {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string program = directory + "/nvidia-cuda-mps-control";
    if (directory.starts_with('/') && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return "/usr/bin/nvidia-cuda-mps-control";
}

bool knows_several_users(const std::string& control_program) {
  std::ifstream file(control_program, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find(kSeveralUsers + 1) != text.npos;  // its name may stand there without the dash
}

bool was_started_with(std::int32_t pid, const std::string& argument, const std::string& proc) {
  std::ifstream file(proc + "/" + std::to_string(pid) + "/cmdline", std::ios::binary);
  for (std::string one; std::getline(file, one, '\0');)
    if (one == argument) return true;
  return false;
}

std::optional<std::int32_t> mps_process_in(const std::string& pipe_directory, const std::string& proc, uid_t own) {
  constexpr std::size_t kMostDigits = 32;
  // MPS may leave the file open to all writers. What they write can only name a process, which is looked at below.
  const auto file = read_trusted_file(pipe_directory + "/nvidia-cuda-mps-control.pid", Writers::all, own, kMostDigits);
  if (!file || !*file) return std::nullopt;
  std::int32_t pid = 0;
  if (!(std::istringstream(**file) >> pid) || pid <= 0) return std::nullopt;
  std::string name;
  // The kernel cuts the name after 15 characters.
  const bool is_mps = std::getline(std::ifstream(proc + "/" + std::to_string(pid) + "/comm"), name) &&
                      name == "nvidia-cuda-mps" && is_process_trusted(pid, proc, own);
  return is_mps ? std::optional(pid) : std::nullopt;
}

bool MpsWatch::active(const std::string& pipe_directory) {
  if (process_ && found_in_ == pipe_directory && !has_ended(process_.get())) return true;
  process_.reset();
  const auto pid = mps_process_in(pipe_directory, proc_, own_);
  if (!pid) return false;
  ipc::UniqueFd process = open_pidfd(*pid);
  if (process && has_ended(process.get())) return false;  // nobody has asked for its exit status yet
  // The pidfd is that process's if the number was so before and after it was opened.
  if (mps_process_in(pipe_directory, proc_, own_) == pid) process_ = std::move(process);
  found_in_ = pipe_directory;
  return true;
}

}  // namespace gpuctl::daemon
