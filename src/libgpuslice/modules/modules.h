// The images that the program has loaded, and their kernels, by the handles that the program has.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "libgpuslice/modules/loaded_image.h"

namespace gpuslice {

/// Loaded images, by CUmodule or CUlibrary. Any thread.
class Modules {
 public:
  static Modules& get();
  void add(const void* handle, std::shared_ptr<LoadedImage> image);
  std::shared_ptr<LoadedImage> find(const void* handle);
  /// Forgets the image, all its kernels, and every handle that leads to it. Returns the image; null if it is unknown.
  std::shared_ptr<LoadedImage> remove(const void* handle);
  void forget_after_fork();

 private:
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<LoadedImage>> images_;
};

/// Makes the image's kernel of this name known under `entry`, a CUfunction or (`is_library_kernel`) a CUkernel. The
/// first call for a name resolves its persistent form.
void register_kernel(LoadedImage& image, const std::string& name, const void* entry, bool is_library_kernel);

}  // namespace gpuslice
