// The clusters that a kernel has by its own declaration, whatever its launches say (`__cluster_dims__`).
#pragma once

#include <cuda.h>

#include <cstdint>

#include "libgpuslice/image/kernels.h"

namespace gpuslice {

/// The blocks of such a cluster; 1: it has none, or the driver does not say. The driver is asked once for each kernel.
/// `function` may be a CUkernel. A context must be current. Any thread.
std::uint32_t own_cluster(KernelInfo& kernel, CUfunction function);

}  // namespace gpuslice
