#include "libgpuslice/modules.h"

#include <algorithm>

#include "libgpuslice/debug.h"
#include "libgpuslice/driver.h"
#include "libgpuslice/late_forms.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

std::shared_ptr<KernelInfo> LoadedImage::kernel(const std::string& name, const void* handle, bool is_library_kernel) {
  std::lock_guard lock(mutex);
  std::shared_ptr<KernelInfo>& known = kernels[name];
  if (!known) {
    known = std::make_shared<KernelInfo>();
    known->name = name;
    known->module = image.label;
    known->reason = image.reason;
    auto listed = std::find_if(image.kernels.begin(), image.kernels.end(), [&](const ImageKernel& k) { return k.name == name; });
    // What the PTX says of the kernel, unless the whole image was refused.
    if (listed != image.kernels.end() && known->reason.empty()) known->reason = listed->reason;
    if ((rewritten() || late) && listed != image.kernels.end()) {
      known->params = listed->params;
      known->args_offset = listed->args_offset;
      known->needs_whole_warps = listed->needs_whole_warps;
      known->words_behind = listed->words_behind;
      known->once = listed->once;
      if (listed->persistent) known->late = late;
      find_form(*known);
    }
    const char* waits = known->late ? known->late->phrase() : nullptr;
    debug("kernel %s of %s: %s, %s", name.c_str(), known->module.c_str(), known->persistent ? "persistent" : "opaque",
          waits ? waits : known->reason.c_str());
  }
  if (is_library_kernel) known->is_library_kernel = true;
  Kernels::get().add(handle, known);
  return known;
}

void LoadedImage::find_form(KernelInfo& kernel) const {
  const CUlibrary from_library = rewritten() ? library : forms_library;
  const CUmodule from_module = rewritten() ? module : forms_module;
  const auto listed = std::find_if(image.kernels.begin(), image.kernels.end(), [&](const ImageKernel& k) { return k.name == kernel.name; });
  if (listed == image.kernels.end() || !listed->persistent || (!from_library && !from_module)) return;
  const std::string name = kernel.name + gpuctl::ptx::kPersistentSuffix;
  const CUresult found = from_library ? driver().cuLibraryGetKernel(&kernel.persistent_kernel, from_library, name.c_str())
                                      : driver().cuModuleGetFunction(&kernel.persistent_function, from_module, name.c_str());
  if (found == CUDA_SUCCESS) {
    kernel.persistent.store(true, std::memory_order_release);  // last: launches read the rest behind it
  } else {
    std::lock_guard lock(kernel.mutex);
    kernel.reason = "the driver does not find its persistent form";
  }
}

void unload_forms(const std::shared_ptr<LoadedImage>& image) {
  if (!image) return;
  std::lock_guard lock(image->mutex);
  if (image->forms_library) driver().cuLibraryUnload(image->forms_library);
  if (image->forms_module) driver().cuModuleUnload(image->forms_module);
  image->forms_library = nullptr;
  image->forms_module = nullptr;
}

Modules& Modules::get() {
  static Modules* modules = new Modules;
  return *modules;
}

void Modules::add(const void* handle, std::shared_ptr<LoadedImage> image) {
  std::lock_guard lock(mutex_);
  images_[handle] = std::move(image);
}

std::shared_ptr<LoadedImage> Modules::find(const void* handle) {
  std::lock_guard lock(mutex_);
  auto found = images_.find(handle);
  return found == images_.end() ? nullptr : found->second;
}

std::shared_ptr<LoadedImage> Modules::remove(const void* handle) {
  std::lock_guard lock(mutex_);
  auto found = images_.find(handle);
  if (found == images_.end()) return nullptr;
  std::shared_ptr<LoadedImage> image = found->second;
  std::erase_if(images_, [&](const auto& entry) { return entry.second == image; });
  std::vector<std::shared_ptr<KernelInfo>> kernels;
  for (const auto& [name, kernel] : image->kernels) kernels.push_back(kernel);
  Kernels::get().remove(kernels);
  return image;
}

void Modules::forget_after_fork() { new (this) Modules; }

}  // namespace gpuslice
