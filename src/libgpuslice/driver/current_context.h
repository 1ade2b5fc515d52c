// The context that is current in this thread.
#pragma once

#include <cuda.h>

#include "libgpuslice/driver/driver.h"

namespace gpuslice {

/// Null: there is none, or no driver.
inline CUcontext current_context() {
  CUcontext context = nullptr;
  const auto ask = driver().cuCtxGetCurrent;
  return ask && ask(&context) == CUDA_SUCCESS ? context : nullptr;
}

}  // namespace gpuslice
