// Turns what a program passes to cuModuleLoadData or cuLibraryLoadData into code that the engine runs.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>

#include "softgpu/engine/engine.h"

namespace gpuctl::softgpu {

struct LoadedImage {
  CUresult result = CUDA_SUCCESS;
  std::string message;                             ///< one line: the error, or which kernels cannot run
  std::shared_ptr<const engine::Program> program;  ///< nullptr on error
};

/// `image` is PTX text that ends in NUL, a fatbin, or a fatbin wrapper. Machine code alone cannot run here
/// (CUDA_ERROR_NO_BINARY_FOR_GPU). If a fatbin has several PTX texts, the one for the highest architecture that this
/// device has is used.
LoadedImage load_image(const void* image);

}  // namespace gpuctl::softgpu
