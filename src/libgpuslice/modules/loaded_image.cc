#include "libgpuslice/modules/loaded_image.h"

#include <algorithm>

namespace gpuslice {

const ImageKernel* LoadedImage::find_listed(const std::string& name) const {
  const auto found =
      std::find_if(listed.begin(), listed.end(), [&](const ImageKernel& kernel) { return kernel.name == name; });
  return found == listed.end() ? nullptr : &*found;
}

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
  if (!kernel.waits_by_name) kernel.blocks_wait = found->blocks_wait;
  kernel.may_get_form.store(found->persistent);
  kernel.changed.store(true);
}

void LoadedImage::set_kernels(std::vector<ImageKernel> now_listed, std::string now_reason) {
  std::lock_guard lock(mutex);
  listed = std::move(now_listed);
  reason = std::move(now_reason);
  for (const auto& [name, kernel] : kernels) describe(*kernel);
}

bool LoadedImage::load_beside(const std::string& code, const std::vector<ImageKernel>& its_kernels) {
  void* loaded = nullptr;
  if (container.load(&loaded, code.data(), {}) != CUDA_SUCCESS) return false;
  if (!persistent_forms_load(its_kernels, container, loaded)) {
    container.unload(loaded);
    return false;
  }
  std::lock_guard lock(mutex);
  forms = loaded;
  for (const auto& [name, kernel] : kernels) find_form(*kernel);
  return true;
}

void LoadedImage::unload_beside() {
  std::lock_guard lock(mutex);
  if (forms) container.unload(forms);
  forms = nullptr;
}

void LoadedImage::find_form(KernelInfo& kernel) const {
  void* const from = has_forms ? handle : forms;
  const ImageKernel* found = find_listed(kernel.name);
  if (!found || !found->persistent || !from) return;
  const std::string name = found->added_entry();
  void* entry = nullptr;
  if (container.get_entry(&entry, from, name.c_str()) != CUDA_SUCCESS) {
    std::lock_guard lock(kernel.mutex);
    kernel.reason = "the driver does not find its persistent form";
    return;
  }
  if (container.is_library)
    kernel.persistent_kernel = static_cast<CUkernel>(entry);
  else
    kernel.persistent_function = static_cast<CUfunction>(entry);
  // Last: launches that see it also see what was written before.
  kernel.persistent.store(true, std::memory_order_release);
}

bool persistent_forms_load(const std::vector<ImageKernel>& kernels, const Container& container, void* handle) {
  const auto first =
      std::find_if(kernels.begin(), kernels.end(), [](const ImageKernel& kernel) { return kernel.persistent; });
  if (first == kernels.end()) return true;
  void* entry = nullptr;
  return container.get_entry(&entry, handle, first->added_entry().c_str()) == CUDA_SUCCESS;
}

}  // namespace gpuslice
