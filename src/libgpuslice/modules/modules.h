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

class LateForms;

/// One loaded image. `library` or `module` is set, never both.
struct LoadedImage {
  std::string label;  ///< for people: ImagePtx::label
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  /// Its own code holds the persistent forms too: it was loaded in place of the program's.
  bool has_forms = false;
  /// Where its persistent forms are, if they were loaded in addition to it (late_forms.h).
  CUlibrary forms_library = nullptr;
  CUmodule forms_module = nullptr;
  std::shared_ptr<LateForms> late;                             ///< set before the image is known to Modules; or null
  std::mutex mutex;                                            ///< guards what follows, and forms_*
  std::vector<ImageKernel> listed;                             ///< the kernels of its PTX, once they are known
  std::string reason;                                          ///< why a kernel that is not listed is opaque; one line
  std::map<std::string, std::shared_ptr<KernelInfo>> kernels;  ///< asked for so far

  /// The kernel of this name, known from now on under `handle` too. Resolves its persistent form at the first call.
  std::shared_ptr<KernelInfo> kernel(const std::string& name, const void* handle, bool is_library_kernel);

  /// What is known of its kernels by now, for those too that were asked for before.
  void set_kernels(std::vector<ImageKernel> now_listed, std::string now_reason);

  /// Loads code that holds the persistent forms of these kernels beside the image. False: the driver refuses it, and
  /// nothing is changed. In the context of the image, where that is a module.
  bool load_forms(const std::string& code, const std::vector<ImageKernel>& its_kernels, bool is_library);

  /// Gives the kernel its persistent form, if it is listed with one, from where they are now, if they are loaded. With
  /// mutex.
  void find_form(KernelInfo& kernel) const;

 private:
  const ImageKernel* find_listed(const std::string& name) const;
  void describe(KernelInfo& kernel) const;
};

/// Whether the first persistent form of these is there. It makes the driver load the code now that it would load at the
/// first use, while the plain image can still be loaded.
bool persistent_forms_load(const std::vector<ImageKernel>& kernels, CUlibrary library, CUmodule module);

/// Unloads what was loaded in addition to the image, after it was forgotten; null does nothing.
void unload_forms(const std::shared_ptr<LoadedImage>& image);

/// By CUmodule or CUlibrary. Any thread.
class Modules {
 public:
  static Modules& get();
  void add(const void* handle, std::shared_ptr<LoadedImage> image);
  std::shared_ptr<LoadedImage> find(const void* handle);
  /// Forgets the image and all its kernels; every handle that leads to it. Returns it, or null: it is not known.
  std::shared_ptr<LoadedImage> remove(const void* handle);
  void forget_after_fork();

 private:
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<LoadedImage>> images_;
};

}  // namespace gpuslice
