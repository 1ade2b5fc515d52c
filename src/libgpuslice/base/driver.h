// The driver's own functions, reached past the wrappers.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// One pointer for each function of driver_functions.inc, under the name that libcuda exports. Null if this driver
/// lacks the function.
struct Driver {
#define X(name) decltype(&::name) name = nullptr;
#include "libgpuslice/base/driver_functions.inc"
#undef X
  bool present = false;  ///< libcuda.so.1 was found
};

/// Opens libcuda.so.1 at the first call. Any thread; own threads must not give their table to others (own_threads.h).
/// Never fails: check `present` and the pointers.
const Driver& driver();

}  // namespace gpuslice
