// Nothing is thrown into the program.
#pragma once

#include <cuda.h>

namespace gpuslice {

/// Runs `body`; if anything is thrown there (out of memory), answers CUDA_ERROR_OUT_OF_MEMORY instead.
template <class Body>
CUresult nothrow(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace gpuslice
