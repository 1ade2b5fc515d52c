// Loading an image. Where its kernels' other forms are compiled already, machine code that holds the original entries
// and the added ones is loaded instead of the image, so that globals and constants exist once; the program never sees
// the added entries. Else the image is loaded as it is, and the compile helper makes the forms beside the program
// (late_forms.h).
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libgpuslice/modules/modules.h"

namespace gpuslice {

/// Compute capability of the current device, or of the first: libraries are loaded before there is a context.
unsigned device_sm();

/// What the program asks the driver to load.
struct ImageToLoad {
  const void* data;
  std::optional<std::size_t> size;  ///< nothing: not known
  const CUjit_option* options;      ///< `count` of them, with `values`; both may be null
  void* const* values;
  unsigned count;
  bool is_library;
};

/// The driver's functions for this kind of container. `Handle` is CUmodule or CUlibrary, as void*.
struct ImageCalls {
  std::function<CUresult()> plain;  ///< the program's own call; puts the handle where it wants it
  std::function<CUresult(void** handle, const void* code)> load;  ///< the same with other code
  std::function<void(void* handle)> unload;
};

/// `out` is where the program wants the handle, null if nowhere.
CUresult load_image(void** out, const ImageToLoad& image, const ImageCalls& calls);

/// The bytes of a file, with a NUL behind them (PTX is text); nothing when it cannot be read.
std::optional<std::vector<char>> read_file(const char* path);

}  // namespace gpuslice
