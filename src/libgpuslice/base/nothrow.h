// No exception reaches the program.
#pragma once

#include <cuda.h>

#include <concepts>
#include <type_traits>

namespace gpuslice {

/// Runs `body`. If it throws (out of memory), returns `otherwise`.
template <class Body>
std::invoke_result_t<Body> nothrow(Body body, std::invoke_result_t<Body> otherwise) noexcept {
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}

/// The same for what answers as the driver does: CUDA_ERROR_OUT_OF_MEMORY.
template <class Body>
requires std::same_as<std::invoke_result_t<Body>, CUresult> CUresult nothrow(Body body)
noexcept {
  return nothrow(body, CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace gpuslice
