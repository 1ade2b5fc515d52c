// Hides the entries that libgpuslice added to an image from the program's counts and lists.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "libgpuslice/driver/debug.h"
#include "libgpuslice/modules/modules.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

/// How many entries were added to the image with this handle.
inline unsigned added_entries(const std::shared_ptr<LoadedImage>& image) {
  if (!image || !image->has_forms) return 0;
  return static_cast<unsigned>(std::count_if(image->listed.begin(), image->listed.end(),
                                             [](const ImageKernel& kernel) { return kernel.persistent; }));
}

/// Writes up to `wanted` of the container's own entries to `out`. The last three parameters are the driver's functions
/// for this kind of container.
template <class Handle, class Container, class Count, class Enumerate, class Find>
CUresult enumerate_own(Handle* out, unsigned wanted, Container container, Count count, Enumerate enumerate, Find find) {
  std::shared_ptr<LoadedImage> image = Modules::get().find(container);
  if (added_entries(image) == 0 || !out) return enumerate(out, wanted, container);
  unsigned total = 0;
  if (CUresult result = count(&total, container); result != CUDA_SUCCESS) return result;
  std::vector<Handle> all(total);
  if (CUresult result = enumerate(all.data(), total, container); result != CUDA_SUCCESS) return result;
  debug("%u of %u entries of %s are told", wanted, total, image->label.c_str());
  std::vector<Handle> ours;
  for (const ImageKernel& kernel : image->listed) {
    Handle handle{};
    if (kernel.persistent &&
        find(&handle, container, (kernel.name + gpuctl::ptx::kPersistentSuffix).c_str()) == CUDA_SUCCESS) {
      ours.push_back(handle);
    }
  }
  for (Handle handle : all) {
    if (wanted == 0) break;
    if (std::find(ours.begin(), ours.end(), handle) != ours.end()) continue;
    *out++ = handle;
    --wanted;
  }
  return CUDA_SUCCESS;
}

}  // namespace gpuslice
