// The compilers that make machine code of a PTX text. They run in the helper, not in the program's process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "libgpuslice/compile/compiler_log.h"

namespace gpuctl::compile {

struct Source {
  std::string text;
  unsigned sm = 0;        ///< compute capability, 90 for 9.0
  char suffix = '\0';     ///< 'a' or 'f' if the text is for this architecture alone
  int max_registers = 0;  ///< per thread; 0 = no limit
};

struct MachineCode {
  std::string image;                                        ///< a cubin
  std::map<std::string, gpuslice::CompiledKernel> kernels;  ///< by name, as far as the compiler reports
};

/// Makes machine code, or says in one line why it cannot.
using Compiler = Result<MachineCode> (*)(const Source& source, const std::string& where);

/// NVIDIA's nvJitLink, a library of the toolkit and of the wheels that frameworks install. It needs no driver and no
/// context. `where`: its path; if empty the function looks for it.
Result<MachineCode> compile_by_nvjitlink(const Source& source, const std::string& where);

/// The toolkit's ptxas, found in PATH, CUDA_HOME or /usr/local/cuda.
Result<MachineCode> compile_by_ptxas(const Source& source, const std::string& where);

/// The driver's linker. It needs a context, which takes some hundred MB of device memory and, under MPS, one of the
/// places for clients.
Result<MachineCode> compile_by_driver(const Source& source, const std::string& where);

/// The suffix of the text's `.target`. A text has one `.target`.
char target_suffix(const std::string& text);

/// "sm_90a".
std::string architecture(const Source& source);

}  // namespace gpuctl::compile
