// What the driver's compiler says of each kernel when it is asked to be verbose, as ptxas -v does: how many registers
// and how much local memory it uses, without loading it.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gpuslice {

struct CompiledKernel {
  int registers = 0;
  int local_bytes = 0;  ///< a thread's, on the stack: grows where registers do not suffice
};

/// By name. What is not understood is left out.
std::map<std::string, CompiledKernel> read_compiler_log(std::string_view log);

}  // namespace gpuslice
