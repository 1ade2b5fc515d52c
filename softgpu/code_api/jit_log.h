// Shared by the loading of modules and libraries: the log buffers of the JIT options, and error codes.
#pragma once

#include <cuda.h>

#include <string_view>

#include "softgpu/code/image.h"
#include "softgpu/code/module.h"

namespace gpuctl::softgpu {

/// The log buffers that a program passed among its JIT options. Other options have no effect here and are skipped.
class JitLog {
 public:
  JitLog() = default;
  JitLog(unsigned count, const CUjit_option* options, void** values);

  /// Puts the image's message into the error log if it could not be loaded, else into the info log.
  void write(const LoadedImage& image) const;

 private:
  struct Buffer {
    char* text = nullptr;
    std::size_t bytes = 0;
    void** used = nullptr;  ///< the option value that receives the length
    void fill(std::string_view message) const;
  };
  Buffer error_;
  Buffer info_;
};

/// The error for a function that a module lacks: it has none of that name, or the engine cannot run it.
CUresult missing_function(const Module& module, std::string_view name);

}  // namespace gpuctl::softgpu
