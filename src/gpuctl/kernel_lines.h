// The kernels of a program as people read them.
#pragma once

#include <string>
#include <vector>

#include "gpuctl/table.h"
#include "ipc/types.h"

namespace gpuctl::cli {

/// "scale(float*, float)" for "_Z5scalePff"; what is not a mangled name stays.
std::string demangled(const std::string& name);

/// What `explain` prints: one line a kernel, most launched first.
Table kernel_table(std::vector<ipc::Kernel> kernels);

}  // namespace gpuctl::cli
