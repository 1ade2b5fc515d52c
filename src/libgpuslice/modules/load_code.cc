#include "libgpuslice/base/stage.h"
#include "libgpuslice/modules/image_load.h"

namespace gpuslice {

namespace {

/// Loads the code with all forms in place of the image. Returns false, with nothing changed, if the driver refuses it.
bool load_in_place(ImageLoad& load) {
  const Stage stage("the driver's loading of what was compiled before");
  const Container& container = *load.container;
  void* handle = nullptr;
  if (container.load(&handle, load.forms->code.data(), load.options) != CUDA_SUCCESS) return false;
  if (!persistent_forms_load(load.forms->kernels, container, handle)) {
    container.unload(handle);
    return false;
  }
  *load.out = handle;
  load.image->handle = handle;
  load.image->has_forms = true;
  return true;
}

/// Loads the code with all forms beside the image, which still answers everything that the program asks of it.
bool load_beside(ImageLoad& load) {
  const Stage stage("the driver's loading of what was compiled before, beside the image");
  return load.image->load_beside(load.forms->code, load.forms->kernels);
}

}  // namespace

CUresult load_code(ImageLoad& load) {
  if (load.plan == LoadPlan::kInPlace && load_in_place(load)) return CUDA_SUCCESS;
  const CUresult result = load.plain();
  if (result != CUDA_SUCCESS)
    return load.plan == LoadPlan::kBesideOrInPlace && load_in_place(load) ? CUDA_SUCCESS : result;
  load.image->handle = *load.out;
  const bool beside = load.plan == LoadPlan::kBeside || load.plan == LoadPlan::kBesideOrInPlace;
  const bool with_forms = beside && load_beside(load);
  if (load.plan != LoadPlan::kOriginal && !with_forms)
    load.reason = "the driver refused the machine code of its other forms";
  return CUDA_SUCCESS;
}

}  // namespace gpuslice
