// The parameters of a launch in original form, for which nobody else needs to know where they lie.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <vector>

#include "libgpuslice/image/kernels.h"

namespace gpuslice {

/// The program's parameters as they lie in the kernel's parameter block; nothing if that is not known. Of a kernel
/// without PTX the driver is asked once for the layout, which takes CUDA 12.4. `function` may be a CUkernel. Any
/// thread, and no stream of the thread is being captured.
std::vector<std::byte> program_parameters(KernelInfo& kernel, CUfunction function, void** params, void** extra);

}  // namespace gpuslice
