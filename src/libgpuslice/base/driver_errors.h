// What the driver's errors mean for a context.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// Whether the error means that its context can no longer be used, because of a fault of a kernel, the device, or MPS.
/// The driver answers every later call in that context with it.
bool breaks_context(CUresult result);

/// The name, such as "CUDA_ERROR_ASSERT". Never null; a literal.
const char* error_name(CUresult result);

}  // namespace gpuslice
