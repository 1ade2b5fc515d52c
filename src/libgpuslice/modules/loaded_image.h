// One image that the program has loaded, as a module or a library, and what is known of its kernels.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "libgpuslice/image/image_kernel.h"
#include "libgpuslice/image/kernels.h"
#include "libgpuslice/modules/container.h"

namespace gpuslice {

struct LoadedImage {
  explicit LoadedImage(const Container& kind) : container(kind) {}

  const Container& container;
  std::string label = "image";  ///< for people: "ptx 1a2b3c4d" (hash of the content)
  void* handle = nullptr;       ///< the program's
  /// Its own code contains the persistent forms too, because that code was loaded in place of the program's.
  bool has_forms = false;
  std::shared_ptr<BackgroundForms> background;                 ///< set before Modules knows the image; may be null
  std::mutex mutex;                                            ///< guards what follows
  void* forms = nullptr;                                       ///< handle of the code that was loaded beside it
  std::vector<ImageKernel> listed;                             ///< the kernels of its PTX, once they are known
  std::string reason;                                          ///< why kernels that are not listed are opaque; one line
  std::map<std::string, std::shared_ptr<KernelInfo>> kernels;  ///< the kernels that the program has asked for so far

  /// Sets what is now known of the image's kernels, also for those that were asked for before.
  void set_kernels(std::vector<ImageKernel> now_listed, std::string now_reason);

  /// Loads code with the persistent forms of these kernels beside the image. Returns false, with nothing changed, if
  /// the driver refuses it. If the image is a module, its context must be current.
  bool load_beside(const std::string& code, const std::vector<ImageKernel>& its_kernels);
  /// Unloads that code again, if there is any.
  void unload_beside();

  /// Tells the kernel what is known of it. The caller holds mutex. No launch reads what is written here before
  /// KernelInfo::persistent is set.
  void describe(KernelInfo& kernel) const;
  /// Gives the kernel its persistent form, if it is listed with one and that is loaded. The caller holds mutex.
  void find_form(KernelInfo& kernel) const;

 private:
  const ImageKernel* find_listed(const std::string& name) const;
};

/// Whether the first persistent form of these kernels can be found. This makes the driver load now the code that it
/// would otherwise load at the first use, while the program's own image can still be loaded instead.
bool persistent_forms_load(const std::vector<ImageKernel>& kernels, const Container& container, void* handle);

}  // namespace gpuslice
