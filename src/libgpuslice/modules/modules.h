// Images loaded by the program, as modules or libraries, and their kernels.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "libgpuslice/compile/image.h"
#include "libgpuslice/kernels/kernels.h"

namespace gpuslice {

class ImageBackgroundForms;

/// One loaded image. `library` or `module` is set, never both.
struct LoadedImage {
  std::string label;  ///< for people: ImagePtx::label
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  /// Its own code contains the persistent forms too, because that code was loaded in place of the program's.
  bool has_forms = false;
  /// Where its persistent forms are, if they were loaded beside it (background_forms.h).
  CUlibrary forms_library = nullptr;
  CUmodule forms_module = nullptr;
  std::shared_ptr<ImageBackgroundForms> background;            ///< set before Modules knows the image; may be null
  std::mutex mutex;                                            ///< guards what follows, and forms_*
  std::vector<ImageKernel> listed;                             ///< the kernels of its PTX, once they are known
  std::string reason;                                          ///< why kernels that are not listed are opaque; one line
  std::map<std::string, std::shared_ptr<KernelInfo>> kernels;  ///< the kernels that the program has asked for so far

  /// The kernel with this name, which from now on is also known under `handle`. The first call resolves its persistent
  /// form.
  std::shared_ptr<KernelInfo> kernel(const std::string& name, const void* handle, bool is_library_kernel);

  /// Sets what is now known of the image's kernels, also for those that were asked for before.
  void set_kernels(std::vector<ImageKernel> now_listed, std::string now_reason);

  /// Loads code with the persistent forms of these kernels beside the image. Returns false, with nothing changed, if
  /// the driver refuses it. If the image is a module, its context must be current.
  bool load_forms(const std::string& code, const std::vector<ImageKernel>& its_kernels, bool is_library);

  /// Gives the kernel its persistent form, if it is listed with one and that is loaded. The caller holds mutex.
  void find_form(KernelInfo& kernel) const;

 private:
  const ImageKernel* find_listed(const std::string& name) const;
  void describe(KernelInfo& kernel) const;
};

/// Whether the first persistent form of these kernels can be found. This makes the driver load now the code that it
/// would otherwise load at the first use, while the program's own image can still be loaded instead.
bool persistent_forms_load(const std::vector<ImageKernel>& kernels, CUlibrary library, CUmodule module);

/// Unloads what was loaded beside the image, after the image was forgotten. Does nothing if `image` is null.
void unload_forms(const std::shared_ptr<LoadedImage>& image);

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

}  // namespace gpuslice
