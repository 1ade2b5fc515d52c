// Loading: the rewritten PTX, which holds the original entries and the persistent ones, is loaded instead of the image,
// so that globals and constants exist once. The program never sees the added entries.
#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libgpuslice/client.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/hooks.h"
#include "libgpuslice/modules.h"
#include "libgpuslice/quiet.h"

namespace gpuslice {

/// Compute capability of the current device, or of the first: libraries are loaded before there is a context.
unsigned device_sm();

/// The program's JIT options, and the register limit recorded with the PTX.
struct JitOptions {
  std::vector<CUjit_option> names;
  std::vector<void*> values;

  JitOptions(const CUjit_option* given, void* const* given_values, unsigned count, int max_registers);
};

/// Makes the driver compile now what it would compile at the first use, while the plain image can still be loaded.
bool persistent_forms_load(const LoadedImage& image);

/// The bytes of a file, with a NUL behind them (PTX is text); nothing when it cannot be read.
std::optional<std::vector<char>> read_file(const char* path);

/// `load(image, options)` loads into `out`; `unload(out)` undoes it; `plain()` is the program's own call.
template <class Handle, class Load, class Unload, class Plain>
CUresult load_image(Handle* out, Handle LoadedImage::*member, const void* data, std::optional<std::size_t> size,
                    const CUjit_option* options, void* const* values, unsigned count, Load load, Unload unload,
                    Plain plain) {
  if (!Client::get().wanted() || !out || !data) return plain();
  return guarded([&] {
    Quiet quiet;
    auto image = std::make_shared<LoadedImage>();
    image->image = prepare_image(data, size, device_sm());
    if (!image->image.text.empty()) {
      JitOptions jit(options, values, count, image->image.max_registers);
      Handle handle{};
      CUresult result = load(&handle, image->image.text.c_str(), jit);
      if (result == CUDA_SUCCESS) {
        (*image).*member = handle;
        if (persistent_forms_load(*image)) {
          image->rewritten_ = true;
        } else {
          unload(handle);
          (*image).*member = nullptr;
        }
      }
      if (!image->rewritten_) {
        image->image.reason = "the driver refused the rewritten PTX (CUDA error " + std::to_string(result) + ")";
        debug("%s: %s", image->image.label.c_str(), image->image.reason.c_str());
      }
      image->image.text = {};
    }
    if (!image->rewritten_) {
      CUresult result = plain();
      if (result != CUDA_SUCCESS) return result;
      (*image).*member = *out;
    }
    *out = (*image).*member;
    Modules::get().add(*out, image);
    return CUDA_SUCCESS;
  });
}

}  // namespace gpuslice
