// A persistent form needs a few registers more than the body alone, and a few can decide how many blocks fit on an SM:
// a kernel of 32 registers runs with twice the threads of one of 40. Where so little is too much, ptxas is given a
// limit.
//
// Only where it is little. Measured on an H200 (docs/measurements.md): md with 34 registers instead of 32 took 1.25 of
// the time, with 32 again 1.04; blackScholes 1.06 with 34, 0.97 with 32; but fft, whose 64 are constants taken out of
// the worker's loop, 1.04 with those and 1.23 with the 40 of its original.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/persistent_abi.h"

namespace gpuslice {

/// Registers a thread of the persistent form may have, if it needs few enough more than fit as often as the original's.
std::optional<int> register_limit(int original, int persistent);

struct RegisterLimit {
  std::string entry;  ///< name
  int registers = 0;
};

/// For the persistent forms of these kernels (ImageKernel). `registers_of(name)`: what an entry has; 0 if that is not
/// known.
template <class Kernels, class RegistersOf>
std::vector<RegisterLimit> wanted_limits(const Kernels& kernels, RegistersOf registers_of) {
  std::vector<RegisterLimit> limits;
  for (const auto& kernel : kernels) {
    if (!kernel.persistent) continue;
    const std::string form = kernel.name + gpuctl::ptx::kPersistentSuffix;
    if (const std::optional<int> limit = register_limit(registers_of(kernel.name), registers_of(form)))
      limits.push_back({form, *limit});
  }
  return limits;
}

/// Local memory of these forms together, in bytes a thread: it grows where registers do not suffice. `local_of(name)`
/// as above.
template <class Kernels, class LocalOf>
long long local_bytes(const Kernels& kernels, LocalOf local_of) {
  long long bytes = 0;
  for (const auto& kernel : kernels) {
    if (kernel.persistent) bytes += local_of(kernel.name + gpuctl::ptx::kPersistentSuffix);
  }
  return bytes;
}

/// The text with `.maxnreg` for these entries. Nothing for one that is not there, or says something of the kind
/// already, since the directives do not go together.
std::string limit_registers(std::string_view text, const std::vector<RegisterLimit>& limits);

}  // namespace gpuslice
