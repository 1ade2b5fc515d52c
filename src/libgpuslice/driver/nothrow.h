// No exception reaches the program.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// Runs `body`. If it throws (out of memory), returns CUDA_ERROR_OUT_OF_MEMORY.
template <class Body>
CUresult nothrow(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace gpuslice
