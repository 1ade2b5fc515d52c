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
  bool private_instance = false;
  bool software_gpu = false;
  std::chrono::microseconds evict_storm{0};
};

/// Parses argv. When the program should end at once (--help, --version, a mistake; already printed) `exit_status` is
/// 0 or more: 0, or 2 for a mistake.
Options parse_options(int argc, char** argv, int& exit_status);

}  // namespace gpuctl::daemon
