// The kernels of a program as people read them.
#pragma once

#include <string>
#include <vector>

#include "gpuctl/text/table.h"
#include "ipc/types.h"

namespace gpuctl::cli {

/// "scale(float*, float)" for "_Z5scalePff"; what is not a mangled name stays.
std::string demangled(const std::string& name);

/// What is in force for the client on each GPU, how its priority stands, and how many SMs it was told of where
/// these are fewer than there are: a line each.
std::vector<std::string> in_force_lines(const ipc::Client& client);

/// How long a program keeps a GPU where programs take turns on it, and whether that was decided here: one line a GPU,
/// none where they do not take turns.
std::vector<std::string> turn_lines(const ipc::Client& client);

/// What `explain` prints: one line a kernel, most launched first.
Table kernel_table(std::vector<ipc::Kernel> kernels);

}  // namespace gpuctl::cli
