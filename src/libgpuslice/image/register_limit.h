// A persistent form needs a few registers more than the kernel's body alone. A few registers can decide how many blocks
// fit on an SM: a kernel with 32 registers runs with twice the threads of one with 40. If only a few registers are too
// many, ptxas is given a limit.
//
// The limit helps only if few registers must be saved. Measured on an H200 (docs/history/README.md): md with 34
// registers instead of 32 took 1.25 times as long, with 32 again 1.04 times; blackScholes 1.06 times with 34, 0.97 with
// 32. But fft has 64 registers because constants are taken out of the worker's loop; it took 1.04 times as long with
// those, and 1.23 times with the 40 of its original.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/persistent_abi.h"

namespace gpuslice {

/// The register limit per thread of the persistent form. Nothing if as many of its blocks fit without a limit as of the
/// original's, or if it has more than a few registers too many.
std::optional<int> register_limit(int original, int persistent);

struct RegisterLimit {
  std::string entry;  ///< name
  int registers = 0;
};

/// The limits for the persistent forms of these kernels (ImageKernel). `registers_of(name)`: registers of an entry; 0:
/// unknown.
template <class Kernels, class RegistersOf>
std::vector<RegisterLimit> wanted_limits(const Kernels& kernels, RegistersOf registers_of) {
  std::vector<RegisterLimit> limits;
  for (const auto& kernel : kernels) {
    if (!kernel.persistent) continue;
    const std::string form = kernel.added_entry();
    if (const std::optional<int> limit = register_limit(registers_of(kernel.name), registers_of(form)))
      limits.push_back({form, *limit});
  }
  return limits;
}

/// Local memory of these forms together, in bytes per thread. It grows when registers do not suffice. `local_of(name)`:
/// bytes of an entry.
template <class Kernels, class LocalOf>
long long local_bytes(const Kernels& kernels, LocalOf local_of) {
  long long bytes = 0;
  for (const auto& kernel : kernels) {
    if (kernel.persistent) bytes += local_of(kernel.added_entry());
  }
  return bytes;
}

/// The text with `.maxnreg` added for these entries. Entries that are missing, or that already have such directives,
/// stay as they are, since the directives exclude each other.
std::string limit_registers(std::string_view text, const std::vector<RegisterLimit>& limits);

}  // namespace gpuslice
