// Copies, as the functions of several families submit them.
#pragma once

#include <cuda.h>

namespace gpuctl::softgpu {

/// A copy between two ends that are what their types say; CU_MEMORYTYPE_UNIFIED is to be found out.
CUresult submit_copy(CUstream handle, const CUDA_MEMCPY3D& what, bool wait, const char* call = __builtin_FUNCTION());

}  // namespace gpuctl::softgpu
