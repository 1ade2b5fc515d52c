// What the driver's compiler reports of each kernel when it is asked to be verbose, like ptxas -v: how many registers
// and how much local memory the kernel uses. The kernel need not be loaded for that.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gpuslice {

struct CompiledKernel {
  int registers = 0;
  int local_bytes = 0;  ///< per thread, on the stack; grows when registers do not suffice
};

/// The kernels in the log, by name. Entries that are not understood are left out.
std::map<std::string, CompiledKernel> read_compiler_log(std::string_view log);

}  // namespace gpuslice
