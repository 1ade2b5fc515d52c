// The kernels of a program as people read them.
#pragma once

#include <string>
#include <vector>

#include "gpuctl/text/table.h"
#include "ipc/types.h"

namespace gpuctl::cli {

/// A line for each GPU: what is in force for the client, the rank of its priority, and how many SMs it was told of if
/// these are fewer than all. `ruling`: ruling_policy().
std::vector<std::string> in_force_lines(const ipc::Client& client, const std::string& ruling = {});

/// How long a program keeps a GPU where programs take turns on it, and whether the daemon decided that: one line for
/// each GPU, none where they do not take turns.
std::vector<std::string> turn_lines(const ipc::Client& client);

/// The mode of its kernels, and whether it is isolated.
std::string mode_text(const ipc::Client& client, const ipc::ClientUsage& usage);

/// The output of `explain`: one line for each kernel, the most launched first.
Table kernel_table(std::vector<ipc::Kernel> kernels);

}  // namespace gpuctl::cli
