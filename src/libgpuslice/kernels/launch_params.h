// What the program passes with a launch, in the terms of the persistent form: pure.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "libgpuslice/kernels/kernels.h"

namespace gpuslice {

/// Puts the program's values where `params` says, into `block`, which becomes `bytes` long and may hold more. False:
/// the call does not carry them all.
bool pack(const std::vector<Parameter>& params, std::size_t bytes, void** values, void** extra,
          std::vector<std::byte>& block);

/// The parameter block of the persistent form with the program's values in place. False: the call does not carry
/// what the kernel declares (the driver will say so).
bool pack(const KernelInfo& kernel, void** params, void** extra, std::vector<std::byte>& block);

/// Whether a kernel that keeps its form for blocks of parts of warps may change it.
bool fits_whole_warps(const KernelInfo& kernel, const std::uint32_t (&grid)[3], const std::uint32_t (&block)[3]);

/// The attributes of a launch, with this priority in place of the one they have, if any.
std::vector<CUlaunchAttribute> with_priority(const CUlaunchAttribute* attributes, unsigned count, int priority);

/// The priority that a launch asks for itself.
std::optional<int> asked_priority(const CUlaunchAttribute* attributes, unsigned count);

/// Attributes under which the persistent form means the same as the original; `keep` those that it should carry.
bool take_attributes(const CUlaunchAttribute* attributes, unsigned count, std::vector<CUlaunchAttribute>& keep);

}  // namespace gpuslice
