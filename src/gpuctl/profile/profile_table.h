// What `gpuctl profile` prints of a profile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

/// How far off the daemon's model is for an input of the kernel that it has not seen: each of the kernel's inputs is
/// left out in turn (sched::left_out_error; FLEP, Figure 7). Empty for fewer than three inputs.
std::optional<double> error_of(const ipc::KernelProfile& kernel);

/// A table, and a line with the mean of the errors if there are any.
std::vector<std::string> profile_lines(const std::vector<ipc::KernelProfile>& kernels);

}  // namespace gpuctl::cli
