// The driver's own functions, reached past the interposer.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// One pointer per function of driver_functions.inc, under the name libcuda exports; null where this driver lacks it.
struct Driver {
#define X(name) decltype(&::name) name = nullptr;
#include "libgpuslice/driver/driver_functions.inc"
#undef X
  bool present = false;  ///< libcuda.so.1 was found
};

/// Opens libcuda.so.1 at the first call; any thread. Never fails: look at `present` and at the pointers.
const Driver& driver();

}  // namespace gpuslice
