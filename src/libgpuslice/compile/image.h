// What a program hands to the driver as a module, and the PTX in it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "libgpuslice/kernels/kernels.h"

namespace gpuslice {

struct ImageKernel {
  std::string name;
  bool persistent = false;        ///< it has a form that gives SMs back
  bool once = false;              ///< the guarded one: each worker runs one block-task
  std::string reason;             ///< one line
  std::vector<Parameter> params;  ///< of the program
  std::uint32_t args_offset = 0;
  bool needs_whole_warps = false;
  bool words_behind = false;  ///< gpuctl::ptx::EntryReport::words_behind
};

/// The PTX of an image, from which its kernels' other forms can be made.
struct ImagePtx {
  std::string label = "image";  ///< for people: "ptx 1a2b3c4d" (hash of the content)
  std::string text;             ///< empty: there is none usable
  std::string reason;           ///< then why; one line
  int max_registers = 0;        ///< option recorded with the PTX; 0 = none
};

/// Finds PTX usable on a device of compute capability `sm` (90 for 9.0) in the image. `size` is known only for files:
/// pointers given to the driver carry none. Any thread; reads the image, keeps nothing of it.
ImagePtx ptx_of_image(const void* image, std::optional<std::size_t> size, unsigned sm);

}  // namespace gpuslice
