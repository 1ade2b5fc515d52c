// What a program gives the driver as a module, and the PTX in it.
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
  bool once = false;              ///< that form is the guarded one: each worker runs one block-task
  std::string reason;             ///< why it has or lacks that form; one line
  std::vector<Parameter> params;  ///< the program's own
  std::uint32_t args_offset = 0;
  bool needs_whole_warps = false;
  bool words_behind = false;  ///< gpuctl::ptx::EntryReport::words_behind
};

/// The PTX of an image, from which other forms of its kernels can be made.
struct ImagePtx {
  std::string label = "image";  ///< for people: "ptx 1a2b3c4d" (hash of the content)
  std::string text;             ///< empty: there is no usable PTX
  std::string reason;           ///< why not; one line
  int max_registers = 0;        ///< limit recorded with the PTX; 0: none
};

/// Finds PTX in the image that is usable on a device of compute capability `sm` (90 for 9.0). `size` is known only for
/// files, since the program gives the driver a pointer without a size. Any thread. Reads the image and keeps no pointer
/// to it.
ImagePtx ptx_of_image(const void* image, std::optional<std::size_t> size, unsigned sm);

}  // namespace gpuslice
