// Single things of a machine that `gpuctl doctor` looks at. Changes nothing. Where they lie is given, for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpuctl/doctor/findings.h"

namespace gpuctl::cli {

/// Without the blanks around it.
std::string trimmed(std::string text);

/// The user of MPS's control daemon of that pipe directory. It is looked for as gpuctld does: its pid file there names
/// a process of its name. Files alone outlive it.
std::optional<std::uint32_t> mps_owner(const std::string& pipe_directory, const std::string& proc = "/proc");

struct Cgroups {
  int version = 0;    ///< 0: there are none
  bool dmem = false;  ///< the controller for the memory of devices is there
};
Cgroups cgroups_of(const std::string& root = "/sys/fs/cgroup");

/// The GPUs, as `program` says. One that does not know how to tell the clocks says the rest.
std::vector<SmiDevice> ask_smi(const std::string& program = "nvidia-smi");

}  // namespace gpuctl::cli
