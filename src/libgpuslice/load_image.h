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
#include "libgpuslice/jit_options.h"
#include "libgpuslice/late_forms.h"
#include "libgpuslice/modules.h"
#include "libgpuslice/quiet.h"
#include "libgpuslice/register_limit.h"
#include "libgpuslice/stage.h"
#include "libgpuslice/when_to_compile.h"

namespace gpuslice {

/// Compute capability of the current device, or of the first: libraries are loaded before there is a context.
unsigned device_sm();

/// That of the current context, or the first.
CUdevice current_device();

/// Threads that may compile so much PTX in this process.
unsigned compile_threads_here(std::size_t text_bytes);

/// Makes the driver compile now what it would compile at the first use, while the plain image can still be loaded.
bool persistent_forms_load(const std::vector<ImageKernel>& kernels, CUlibrary library, CUmodule module);
inline bool persistent_forms_load(const LoadedImage& image) {
  return persistent_forms_load(image.image.kernels, image.library, image.module);
}

/// How an image is to be loaded: what the rewritten text was compiled to before, if that is known, or when it is to be compiled.
struct LoadPlan {
  std::optional<std::string> compiled;
  Compile when = Compile::kNow;
};
LoadPlan plan_load(const PreparedImage& image, const CUjit_option* options, unsigned count);

/// Limits for its persistent forms, loaded without any.
std::vector<RegisterLimit> wanted_limits(const LoadedImage& image);

/// Local memory of its persistent forms together, in bytes a thread.
long long local_bytes(const LoadedImage& image);

/// The bytes of a file, with a NUL behind them (PTX is text); nothing when it cannot be read.
std::optional<std::vector<char>> read_file(const char* path);

/// Loads it once more with limits for its registers, if some should have any, and keeps what is better.
template <class Handle, class Load, class Unload>
void limit_loaded(LoadedImage& image, Handle LoadedImage::*member, Load load, Unload unload) {
  const std::vector<RegisterLimit> limits = wanted_limits(image);
  if (limits.empty()) return;
  const Stage stage("loading it once more with limits for registers");
  const std::string text = limit_registers(image.image.text, limits);
  const long long before = local_bytes(image);
  const Handle unlimited = image.*member;
  Handle limited{};
  if (text == image.image.text || load(&limited, text.c_str()) != CUDA_SUCCESS) return;
  image.*member = limited;
  const bool kept = persistent_forms_load(image) && local_bytes(image) <= before;
  unload(kept ? unlimited : limited);
  if (!kept) image.*member = unlimited;
  debug("%s: %s with at most %d registers, and %zu more: %s", image.image.label.c_str(), limits.front().entry.c_str(),
        limits.front().registers, limits.size() - 1, kept ? "kept" : "they spill");
}

/// `load(image, options)` loads into `out`; `unload(out)` undoes it; `plain()` is the program's own call.
template <class Handle, class Load, class Unload, class Plain>
CUresult load_image(Handle* out, Handle LoadedImage::*member, const void* data, std::optional<std::size_t> size,
                    const CUjit_option* options, void** values, unsigned count, Load load, Unload unload,
                    Plain plain) {
  if (!Client::get().wanted() || !out || !data) return plain();
  return guarded([&] {
    const Stage stage("loading an image");
    Quiet quiet;
    auto image = std::make_shared<LoadedImage>();
    const Stopwatch preparing;
    image->image = [&] {
      const Stage looking("looking for its PTX, and rewriting that or finding it rewritten");
      return prepare_image(data, size, device_sm());
    }();
    const long long prepared_us = preparing.us();
    const LoadPlan plan = plan_load(image->image, options, count);
    if (plan.compiled) {
      const Stage stage_of_it("the driver's loading of what was compiled before");
      JitOptions jit(options, values, count, 0, 1);
      Handle handle{};
      if (load(&handle, plan.compiled->data(), jit) == CUDA_SUCCESS) {
        (*image).*member = handle;
        image->rewritten_ = persistent_forms_load(*image);
        if (!image->rewritten_) {
          unload(handle);
          (*image).*member = nullptr;
        }
      }
      if (image->rewritten_) jit.give_back();
      debug("%s: %s", image->image.label.c_str(), image->rewritten_ ? "compiled before" : "the driver refused what was compiled before");
    } else if (plan.when != Compile::kNow) {
      const Stage as_it_is("the driver's loading of the image as it is, to be compiled later");
      if (plain() == CUDA_SUCCESS) {
        (*image).*member = *out;
        image->late = LateForms::begin(image, plan.when);
      }
    }
    if (!image->rewritten_ && !image->late && !image->image.text.empty()) {
      const Stage compiling("the driver's loading of rewritten text");
      const Stopwatch loading;
      JitOptions jit(options, values, count, image->image.max_registers, compile_threads_here(image->image.text.size()));
      CUresult result = CUDA_SUCCESS;
      image->rewritten_ = attempt_load(jit, [&] {
        Handle handle{};
        result = load(&handle, image->image.text.c_str(), jit);
        if (result != CUDA_SUCCESS) return false;
        (*image).*member = handle;
        if (persistent_forms_load(*image)) return true;
        unload(handle);
        (*image).*member = nullptr;
        return false;
      });
      debug("%s: %zu bytes of rewritten text, made or found in %lld us, loaded in %lld us", image->image.label.c_str(),
            image->image.text.size(), prepared_us, loading.us());
      if (!image->rewritten_) {
        image->image.reason = "the driver refused the rewritten PTX (CUDA error " + std::to_string(result) + ")";
        debug("%s: %s", image->image.label.c_str(), image->image.reason.c_str());
      }
      if (image->rewritten_) {
        JitOptions again(options, values, count, image->image.max_registers, compile_threads_here(image->image.text.size()));
        limit_loaded(*image, member, [&](Handle* handle, const char* text) { return load(handle, text, again); }, unload);
      }
    }
    image->image.text = {};
    if (!image->rewritten_ && !image->late) {
      const Stage as_it_is("the driver's loading of the image as it is");
      const Stopwatch loading;
      CUresult result = plain();
      debug("%s: looked at for %lld us, loaded as it is in %lld us", image->image.label.c_str(), prepared_us, loading.us());
      if (result != CUDA_SUCCESS) return result;
      (*image).*member = *out;
    }
    *out = (*image).*member;
    Modules::get().add(*out, image);
    return CUDA_SUCCESS;
  });
}

}  // namespace gpuslice
