// How an image is loaded: a pipeline of five steps, and the struct that they hand on.
//
//   find_ptx          the PTX in the image from which other forms of its kernels can be made
//   rewrite_ptx       these forms: from the cache, or a request to the compile helper, which rewrites and compiles
//   plan_load         what the driver is to load: the image, the forms, or both
//   load_code         the driver's calls
//   register_kernels  the image is known from now on, and so are its kernels when the program asks for them
//
// If a step finds that there are no forms, it says why, and the steps after it load the image unchanged.
//
// The forms come as machine code with the original and the added entries. It is loaded in place of the image, so that
// globals and constants exist once; the program never sees the added entries (own_entries.h). If a second copy does no
// harm (Forms::stands_alone), that code is loaded beside the image instead. Forms that are not compiled yet are made in
// the background (background_forms.h).
#pragma once

#include <cuda.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "libgpuslice/image/compile_job.h"
#include "libgpuslice/image/forms.h"
#include "libgpuslice/modules/container.h"
#include "libgpuslice/modules/loaded_image.h"

namespace gpuslice {

/// What the driver is to load.
enum class LoadPlan {
  kOriginal,         ///< the image alone
  kInPlace,          ///< the code with all forms; if the driver refuses it, the image
  kBeside,           ///< the image, and the code with all forms beside it
  kBesideOrInPlace,  ///< the same; if the driver refuses the image, the code in its place
};

/// One image on its way from the program's call to its registered kernels.
struct ImageLoad {
  // What the program asks for.
  const Container* container = nullptr;
  void** out = nullptr;               ///< where the program wants the handle
  const void* data = nullptr;         ///< the image; null if `path` names it
  const char* path = nullptr;         ///< a file with the image, or null
  LoadOptions options{};              ///< the program's
  std::function<CUresult()> plain{};  ///< the program's own call, which also stores the handle

  // What read_image_file() adds.
  std::string file{};
  std::optional<std::size_t> size{};  ///< of the image, in bytes; nothing: unknown, since the program gives none

  // What find_ptx() adds.
  std::string ptx{};      ///< empty: there is none that can be used
  int max_registers = 0;  ///< the limit per thread that the image or the program wants; 0: none
  unsigned sm = 0;        ///< compute capability of the device, 90 for 9.0
  std::string reason{};   ///< why its kernels have no other form than their original; one line

  // What rewrite_ptx() adds: one of these, or a reason.
  std::optional<Forms> forms{};
  std::optional<CompileRequest> request{};  ///< for forms made in the background
  bool own_code_alone = false;              ///< the driver runs only what its own linker makes

  // What plan_load() adds.
  LoadPlan plan = LoadPlan::kOriginal;

  // What remains: find_ptx() gives it its label, load_code() its handle, register_kernels() its kernels.
  std::shared_ptr<LoadedImage> image{};
};

/// The whole pipeline. Outside of a slice it only calls `plain`.
CUresult load_image(ImageLoad load);

// The steps, in this order. load_code() returns what the program is told.
void find_ptx(ImageLoad& load);
void rewrite_ptx(ImageLoad& load);
void plan_load(ImageLoad& load);
CUresult load_code(ImageLoad& load);
void register_kernels(ImageLoad& load);

}  // namespace gpuslice
