#include "libgpuslice/modules/modules.h"

#include <new>
#include <vector>

namespace gpuslice {

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
