// The first launch of a kernel.
#pragma once

#include <cuda.h>

#include "libgpuslice/image/kernels.h"

namespace gpuslice {

/// A function's first launch may load its code, which blocks until the device is idle. So this loads the code now,
/// while no launch is incomplete (quiesce.h), if `kernel` was not launched yet. Does nothing if `kernel` is null.
/// `function` is what the program launches. The context must be current.
void load_before_first_launch(KernelInfo* kernel, CUfunction function);

}  // namespace gpuslice
