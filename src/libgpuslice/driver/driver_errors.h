// What the driver's errors mean for a context.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// Whether this error says that the context it was answered for is of no use any more: a fault of a kernel, of the
/// device, or of MPS. The driver answers every later call there with it.
bool breaks_context(CUresult result);

/// "CUDA_ERROR_ASSERT"; never null. A literal.
const char* error_name(CUresult result);

}  // namespace gpuslice
