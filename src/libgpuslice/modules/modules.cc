#include "libgpuslice/modules/modules.h"

#include <algorithm>

#include "libgpuslice/driver/debug.h"
#include "libgpuslice/driver/driver.h"
#include "libgpuslice/kernels/together.h"
#include "libgpuslice/modules/late_forms.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

const ImageKernel* LoadedImage::find_listed(const std::string& name) const {
  const auto found =
      std::find_if(listed.begin(), listed.end(), [&](const ImageKernel& kernel) { return kernel.name == name; });
  return found == listed.end() ? nullptr : &*found;
}

/// The caller holds mutex. No launch reads what is written here before KernelInfo::persistent is set.
void LoadedImage::describe(KernelInfo& kernel) const {
  const ImageKernel* found = find_listed(kernel.name);
  std::lock_guard lock(kernel.mutex);
  // What the PTX says of the kernel, unless the whole image was refused.
  kernel.reason = found && reason.empty() ? found->reason : reason;
  if (!found) return;
  kernel.params = found->params;
  kernel.args_offset = found->args_offset;
  kernel.needs_whole_warps = found->needs_whole_warps;
  kernel.words_behind = found->words_behind;
  kernel.guarded = found->once;
  kernel.may_get_form.store(found->persistent);
  kernel.changed.store(true);
}

std::shared_ptr<KernelInfo> LoadedImage::kernel(const std::string& name, const void* handle, bool is_library_kernel) {
  std::lock_guard lock(mutex);
  std::shared_ptr<KernelInfo>& known = kernels[name];
  if (!known) {
    known = std::make_shared<KernelInfo>();
    known->name = name;
    known->module = label;
    known->blocks_wait = blocks_may_wait(name);
    known->late = late;
    describe(*known);
    find_form(*known);
    const char* waits = known->late && known->may_get_form ? known->late->phrase() : nullptr;
    debug("kernel %s of %s: %s, %s", name.c_str(), known->module.c_str(), known->persistent ? "persistent" : "opaque",
          waits ? waits : known->reason.c_str());
  }
  if (is_library_kernel) known->is_library_kernel = true;
  Kernels::get().add(handle, known);
  return known;
}

void LoadedImage::set_kernels(std::vector<ImageKernel> now_listed, std::string now_reason) {
  std::lock_guard lock(mutex);
  listed = std::move(now_listed);
  reason = std::move(now_reason);
  for (const auto& [name, kernel] : kernels) describe(*kernel);
}

bool LoadedImage::load_forms(const std::string& code, const std::vector<ImageKernel>& its_kernels, bool is_library) {
  CUlibrary new_library = nullptr;
  CUmodule new_module = nullptr;
  const CUresult result =
      is_library ? driver().cuLibraryLoadData(&new_library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0)
                 : driver().cuModuleLoadDataEx(&new_module, code.data(), 0, nullptr, nullptr);
  if (result != CUDA_SUCCESS) return false;
  if (!persistent_forms_load(its_kernels, new_library, new_module)) {
    if (new_library) driver().cuLibraryUnload(new_library);
    if (new_module) driver().cuModuleUnload(new_module);
    return false;
  }
  std::lock_guard lock(mutex);
  forms_library = new_library;
  forms_module = new_module;
  for (const auto& [name, kernel] : kernels) find_form(*kernel);
  return true;
}

void LoadedImage::find_form(KernelInfo& kernel) const {
  const CUlibrary from_library = has_forms ? library : forms_library;
  const CUmodule from_module = has_forms ? module : forms_module;
  const ImageKernel* found = find_listed(kernel.name);
  if (!found || !found->persistent || (!from_library && !from_module)) return;
  const std::string name = kernel.name + gpuctl::ptx::kPersistentSuffix;
  const CUresult result = from_library
                              ? driver().cuLibraryGetKernel(&kernel.persistent_kernel, from_library, name.c_str())
                              : driver().cuModuleGetFunction(&kernel.persistent_function, from_module, name.c_str());
  if (result == CUDA_SUCCESS) {
    // Last: launches that see it also see what was written before.
    kernel.persistent.store(true, std::memory_order_release);
  } else {
    std::lock_guard lock(kernel.mutex);
    kernel.reason = "the driver does not find its persistent form";
  }
}

bool persistent_forms_load(const std::vector<ImageKernel>& kernels, CUlibrary library, CUmodule module) {
  for (const ImageKernel& kernel : kernels) {
    if (!kernel.persistent) continue;
    const std::string name = kernel.name + gpuctl::ptx::kPersistentSuffix;
    if (library) {
      CUkernel found;
      return driver().cuLibraryGetKernel(&found, library, name.c_str()) == CUDA_SUCCESS;
    }
    CUfunction found;
    return driver().cuModuleGetFunction(&found, module, name.c_str()) == CUDA_SUCCESS;
  }
  return true;
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

void Modules::forget_after_fork() {
  new (this) Modules;
}

}  // namespace gpuslice
