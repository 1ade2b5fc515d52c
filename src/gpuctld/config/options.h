// The command line of gpuctld(8).
#pragma once

#include <chrono>
#include <string>

namespace gpuctl::daemon {

struct Options {
  std::string socket;  ///< where to listen
  std::string config;  ///< "": none
  bool config_required = false;
  std::string state;  ///< directory
  std::string usage;  ///< directory of what outlives the boot: systemd's StateDirectory=, else that of the state
  bool private_instance = false;
  bool software_gpu = false;
  bool check_config = false;       ///< only say what is wrong in the configuration
  bool strict = false;             ///< the same of what gpuctl.toml(5) does not describe
  bool probe = false;              ///< only say what the CUDA driver says of its devices
  bool look = false;               ///< only say who uses a GPU past gpuctl (host/gpu_users.h)
  std::string look_for;            ///< what they have open; "": the device of CUDA
  std::string look_socket;         ///< where `gpuctld --look` answers; "": nobody is looked for
  std::string probe_socket;        ///< where `gpuctld --probe` answers; "": a child process asks the driver
  bool mps_control = false;        ///< only give MPS one command, from standard input
  std::string mps_control_socket;  ///< where `gpuctld --mps-control` answers; "": the daemon gives MPS its commands
  bool mps_start = false;          ///< only start MPS, and become its control daemon
  std::string mps_start_socket;    ///< where `gpuctld --mps-start` answers; "": the daemon starts MPS
  bool limit_memory = false;       ///< only have the driver limit a control group (host/group_limits.h)
  std::string limits_socket;       ///< where `gpuctld --limit-memory` answers; "": a child process does it
  std::chrono::microseconds evict_storm{0};
};

/// Parses argv. `exit_status` is negative if the program should go on. If it should end at once (--help, --version, a
/// mistake; the text is printed already) it is 0, or 2 for a mistake.
Options parse_options(int argc, char** argv, int& exit_status);

}  // namespace gpuctl::daemon
