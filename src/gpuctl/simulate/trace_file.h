// A recorded trace as a workload for gpuctl simulate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

/// TOML in the format of gpuctl simulate (docs/design/simulator.md). Each launch is an application. It starts when the
/// launch was at the head of its program's work, and takes as long as the launch does alone. `sms`: of each device.
std::string to_workload(const std::vector<ipc::Launch>& launches, std::size_t devices, std::int64_t sms);

}  // namespace gpuctl::cli
