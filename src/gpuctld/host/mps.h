#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// Whether a CUDA MPS control daemon serves this machine: its pid file lies in the pipe directory
/// ($CUDA_MPS_PIPE_DIRECTORY, else /tmp/nvidia-mps) and names a live process. Both must belong to root or to this
/// process's user. Never waits. Clients that use another pipe directory are not seen. For one thread.
bool mps_active();

/// $CUDA_MPS_PIPE_DIRECTORY, else /tmp/nvidia-mps. Where the variable names a server or a namespace of MPS v3: the
/// directory of its control daemon.
std::string mps_pipe_directory();

/// Whether the process was started by the control daemon of that pipe directory, which starts MPS servers and nothing
/// else.
bool is_mps_server(std::int32_t pid, const std::string& pipe_directory, const std::string& proc = "/proc");

/// nvidia-cuda-mps-control, MPS's control program: the one in PATH, else the one in /usr/bin.
std::string mps_control_program();

/// For the control daemon: its server serves several users at a time. Newer ones know it, and root alone may say it.
inline constexpr char kSeveralUsers[] = "-multiuser-server";
/// Whether this control program knows that.
bool knows_several_users(const std::string& control_program);
/// Whether the process got that argument when it was started.
bool was_started_with(std::int32_t pid, const std::string& argument, const std::string& proc = "/proc");

/// The control daemon's process, as mps_active() finds it, of a given pipe directory. `proc` is where processes are
/// looked up, `own` this process's user.
std::optional<std::int32_t> mps_process_in(const std::string& pipe_directory, const std::string& proc, uid_t own);

/// Whether the process is there, for who asks often. Once it is found, only its end is looked for, which takes a
/// microsecond; to look at its file and its users takes tens of them. For one thread.
class MpsWatch {
 public:
  /// `proc` and `own`: as for mps_process_in().
  MpsWatch(std::string proc, uid_t own) : proc_(std::move(proc)), own_(own) {}
  bool active(const std::string& pipe_directory);

 private:
  std::string proc_, found_in_;
  uid_t own_;
  ipc::UniqueFd process_;  ///< a pidfd of the process that was found there
};

}  // namespace gpuctl::daemon
