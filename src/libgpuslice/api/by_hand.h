// Launches of kernels written preemptible by hand (<gpuslice/device.cuh>). They need no rewriting and have no other
// form.
#pragma once

#include <cuda.h>

#include "gpuslice/gpuslice.h"

namespace gpuslice {

/// gpuslice_launch(), with arguments that are not null. Any thread. The context must be current.
int launch_by_hand(CUfunction function, const gpuslice_launch_config& config, void** params);

}  // namespace gpuslice
