#pragma once

#include <sys/types.h>

#include <string>

namespace gpuctl::daemon {

/// Whether a CUDA MPS control daemon serves this machine: its pid file lies in the pipe directory
/// ($CUDA_MPS_PIPE_DIRECTORY, else /tmp/nvidia-mps) and names a live process. Both must belong to root or to this
/// process's user. Never waits. Clients that use another pipe directory are not seen.
bool mps_active();

/// $CUDA_MPS_PIPE_DIRECTORY, else /tmp/nvidia-mps.
std::string mps_pipe_directory();

/// nvidia-cuda-mps-control, MPS's control program: the one in PATH, else the one in /usr/bin.
std::string mps_control_program();

/// mps_active() for a given pipe directory. `proc` is where processes are looked up, `own` this process's user.
bool mps_active_in(const std::string& pipe_directory, const std::string& proc, uid_t own);

}  // namespace gpuctl::daemon
