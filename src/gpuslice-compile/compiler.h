// The compilers that make machine code of a PTX text. They run in the helper, not in the program's process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "libgpuslice/image/compiler_log.h"

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

/// The first ptxas that takes the text. `where`: see ptxas_programs().
Result<MachineCode> compile_by_ptxas(const Source& source, const std::string& where);

/// Paths of every ptxas there is: of the toolkit or the Python environment that has `nvjitlink`, the path of a library,
/// as that is of the program's own CUDA version (such an environment has Triton's if it has PyTorch); then in PATH,
/// CUDA_HOME and /usr/local/cuda. Variables count for nothing in a process with more rights than its caller.
std::vector<std::string> ptxas_programs(const std::string& nvjitlink);

/// Threads for a text of so many bytes. Short ones compile within a tenth of a second, where threads do not pay.
unsigned threads_for(std::size_t bytes);

/// The driver's linker. It needs a context, which takes some hundred MB of device memory and, under MPS, one of the
/// places for clients.
Result<MachineCode> compile_by_driver(const Source& source, const std::string& where);

/// The suffix of the text's `.target`. A text has one `.target`.
char target_suffix(const std::string& text);

/// "sm_90a".
std::string architecture(const Source& source);

}  // namespace gpuctl::compile
