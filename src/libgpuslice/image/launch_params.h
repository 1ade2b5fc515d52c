// Translates the parameters and attributes of the program's launch for the persistent form. Pure.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "libgpuslice/image/kernels.h"

namespace gpuslice {

/// Writes the program's values into `block` at the offsets that `params` says. `block` becomes `bytes` long and may
/// have room for more. Returns false if the call does not carry all values.
bool pack(const std::vector<Parameter>& params, std::size_t bytes, void** values, void** extra,
          std::vector<std::byte>& block);

/// Makes the parameter block of the persistent form with the program's values in place. Returns false if the
/// call does not carry what the kernel declares (the driver will then report that).
bool pack(const KernelInfo& kernel, void** params, void** extra, std::vector<std::byte>& block);

/// Whether a kernel that may change its form only for blocks of whole warps may do so for this launch.
bool fits_whole_warps(const KernelInfo& kernel, const std::uint32_t (&grid)[3], const std::uint32_t (&block)[3]);

/// The attributes of a launch, with this priority in place of their own, if they have one.
std::vector<CUlaunchAttribute> with_priority(const CUlaunchAttribute* attributes, unsigned count, int priority);

/// The priority that a launch itself asks for.
std::optional<int> asked_priority(const CUlaunchAttribute* attributes, unsigned count);

/// Whether the persistent form means the same as the original under these attributes. `keep`: those that the persistent
/// launch should carry.
bool take_attributes(const CUlaunchAttribute* attributes, unsigned count, std::vector<CUlaunchAttribute>& keep);

}  // namespace gpuslice
