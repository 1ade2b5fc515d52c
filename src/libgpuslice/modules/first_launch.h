// The first launch of a kernel.
#pragma once

#include <cuda.h>

#include "libgpuslice/kernels/kernels.h"

namespace gpuslice {

/// A function's first launch may load its code, which blocks until the device is idle: so it is loaded now, if `kernel`
/// was not launched yet. Null: nothing happens. `function` is what the program launches; the context must be current.
void load_before_first_launch(KernelInfo* kernel, CUfunction function);

}  // namespace gpuslice
