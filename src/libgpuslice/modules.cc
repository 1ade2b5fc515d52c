#include "libgpuslice/modules.h"

#include <algorithm>

#include "libgpuslice/debug.h"
#include "libgpuslice/driver.h"
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
    if (rewritten() && listed != image.kernels.end()) {
      known->params = listed->params;
      known->args_offset = listed->args_offset;
      known->needs_whole_warps = listed->needs_whole_warps;
      const std::string persistent = name + gpuctl::ptx::kPersistentSuffix;
      if (listed->persistent && library) {
        known->persistent = driver().cuLibraryGetKernel(&known->persistent_kernel, library, persistent.c_str()) == CUDA_SUCCESS;
      } else if (listed->persistent) {
        known->persistent = driver().cuModuleGetFunction(&known->persistent_function, module, persistent.c_str()) == CUDA_SUCCESS;
      }
      if (listed->persistent && !known->persistent) known->reason = "the driver does not find its persistent form";
    }
    debug("kernel %s of %s: %s, %s", name.c_str(), known->module.c_str(), known->persistent ? "persistent" : "opaque",
          known->reason.c_str());
  }
  if (is_library_kernel) known->is_library_kernel = true;
  Kernels::get().add(handle, known);
  return known;
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

void Modules::remove(const void* handle) {
  std::lock_guard lock(mutex_);
  auto found = images_.find(handle);
  if (found == images_.end()) return;
  std::shared_ptr<LoadedImage> image = found->second;
  std::erase_if(images_, [&](const auto& entry) { return entry.second == image; });
  std::vector<std::shared_ptr<KernelInfo>> kernels;
  for (const auto& [name, kernel] : image->kernels) kernels.push_back(kernel);
  Kernels::get().remove(kernels);
}

void Modules::forget_after_fork() { new (this) Modules; }

}  // namespace gpuslice
