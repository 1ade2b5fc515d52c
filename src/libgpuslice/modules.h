// Images loaded by the program, as modules or libraries, and their kernels.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "libgpuslice/image.h"
#include "libgpuslice/kernels.h"

namespace gpuslice {

/// One loaded image. `library` or `module` is set, never both.
struct LoadedImage {
  PreparedImage image;  ///< without its text
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<KernelInfo>> kernels;  ///< asked for so far

  bool rewritten() const { return rewritten_; }
  bool rewritten_ = false;

  /// The kernel of this name, known from now on under `handle` too. Resolves its persistent form at the first call.
  std::shared_ptr<KernelInfo> kernel(const std::string& name, const void* handle, bool is_library_kernel);
};

/// By CUmodule or CUlibrary. Any thread.
class Modules {
 public:
  static Modules& get();
  void add(const void* handle, std::shared_ptr<LoadedImage> image);
  std::shared_ptr<LoadedImage> find(const void* handle);
  /// Forgets the image and all its kernels; every handle that leads to it.
  void remove(const void* handle);
  void forget_after_fork();

 private:
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<LoadedImage>> images_;
};

}  // namespace gpuslice
