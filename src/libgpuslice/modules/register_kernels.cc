#include "libgpuslice/base/debug.h"
#include "libgpuslice/image/whole_grid.h"
#include "libgpuslice/modules/background_forms.h"
#include "libgpuslice/modules/image_load.h"
#include "libgpuslice/modules/modules.h"

namespace gpuslice {

void register_kernels(ImageLoad& load) {
  LoadedImage& image = *load.image;
  image.set_kernels(load.forms ? std::move(load.forms->kernels) : std::vector<ImageKernel>(), load.reason);
  if (load.request) image.background = ImageBackgroundForms::begin(load.image, std::move(*load.request));
  Modules::get().add(image.handle, load.image);
}

void register_kernel(LoadedImage& image, const std::string& name, const void* entry, bool is_library_kernel) {
  std::lock_guard lock(image.mutex);
  std::shared_ptr<KernelInfo>& known = image.kernels[name];
  if (!known) {
    known = std::make_shared<KernelInfo>();
    known->name = name;
    known->module = image.label;
    note_by_name(*known);
    known->background = image.background;
    image.describe(*known);
    image.find_form(*known);
    const char* waits = known->background && known->may_get_form ? known->background->phrase() : nullptr;
    debug("kernel %s of %s: %s, %s", name.c_str(), known->module.c_str(), known->persistent ? "persistent" : "opaque",
          waits ? waits : known->reason.c_str());
  }
  if (is_library_kernel) known->is_library_kernel = true;
  Kernels::get().add(entry, known);
}

}  // namespace gpuslice
