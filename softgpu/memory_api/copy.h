// Copies, which functions of several families submit.
#pragma once

#include <cuda.h>

namespace gpuctl::softgpu {

/// Submits a copy between two ends of the given types; the kind of a CU_MEMORYTYPE_UNIFIED end is looked up.
CUresult submit_copy(CUstream handle, const CUDA_MEMCPY3D& what, bool wait, const char* call = __builtin_FUNCTION());

}  // namespace gpuctl::softgpu
