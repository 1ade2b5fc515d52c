// From what a program hands to the driver as a module to what is loaded instead.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "libgpuslice/kernels.h"

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

struct PreparedImage {
  std::string label;                 ///< for people: "ptx 1a2b3c4d" (hash of the content)
  std::string text;                  ///< rewritten PTX to load instead of the image; empty: load the image as it is
  std::vector<ImageKernel> kernels;  ///< of the PTX
  std::string reason;                ///< why a kernel not listed is opaque; one line
  int max_registers = 0;             ///< option recorded with the PTX; 0 = none
  bool machine_code = false;         ///< the image has some for this device besides the PTX
  bool stands_alone = false;         ///< gpuctl::ptx::stands_alone() of the PTX
};

/// Finds PTX usable on a device of compute capability `sm` (90 for 9.0) in the image and rewrites it. `size` is known
/// only for files: pointers given to the driver carry none. Never fails: an image that cannot be rewritten is loaded as
/// it is, with the reason. Any thread; reads the image, keeps nothing of it.
PreparedImage prepare_image(const void* image, std::optional<std::size_t> size, unsigned sm);

}  // namespace gpuslice
