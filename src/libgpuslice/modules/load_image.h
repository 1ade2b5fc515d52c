// Loads an image. If its kernels' other forms are already compiled, machine code with the original and the added
// entries is loaded instead of the image, so that globals and constants exist once; the program never sees the added
// entries. If a second copy does no harm (Forms::stands_alone), that code is loaded beside the image. If the forms are
// not compiled, the image is loaded unchanged, and the compile helper makes the forms in the background
// (background_forms.h).
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libgpuslice/modules/modules.h"

namespace gpuslice {

/// Compute capability of the current device, or of the first one if no context is current, since libraries may be
/// loaded before there is a context.
unsigned device_sm();

/// What the program asks the driver to load.
struct ImageToLoad {
  const void* data;
  std::optional<std::size_t> size;  ///< nothing: unknown
  /// The program's options for the compiler, `count` of them, with `values`; both may be null.
  const CUjit_option* options;
  void* const* values;
  unsigned count;
  bool is_library;
};

/// The driver's functions for this kind of container. `Handle` is CUmodule or CUlibrary, as void*.
struct ImageCalls {
  std::function<CUresult()> plain;  ///< the program's own call, which also stores the handle
  std::function<CUresult(void** handle, const void* code)> load;  ///< the same call with other code
  std::function<void(void* handle)> unload;
};

/// `out` is where the program wants the handle; it may be null.
CUresult load_image(void** out, const ImageToLoad& image, const ImageCalls& calls);

/// The bytes of a file, followed by a NUL (PTX is text). Nothing if it cannot be read.
std::optional<std::vector<char>> read_file(const char* path);

}  // namespace gpuslice
