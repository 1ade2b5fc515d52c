#pragma once

#include <string>

namespace gpuctl::daemon {

/// Whether a CUDA MPS control daemon serves this machine: its pid file lies in the pipe directory
/// ($CUDA_MPS_PIPE_DIRECTORY, else /tmp/nvidia-mps) and names a live process. Clients that use another pipe
/// directory are not seen.
bool mps_active();

/// The same for a given pipe directory; `proc` is where processes are looked up.
bool mps_active_in(const std::string& pipe_directory, const std::string& proc = "/proc");

}  // namespace gpuctl::daemon
