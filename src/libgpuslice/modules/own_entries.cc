#include "libgpuslice/modules/own_entries.h"

#include <algorithm>

#include "libgpuslice/base/debug.h"

namespace gpuslice {

unsigned added_entries(const LoadedImage& image) {
  if (!image.has_forms) return 0;
  return static_cast<unsigned>(std::count_if(image.listed.begin(), image.listed.end(),
                                             [](const ImageKernel& kernel) { return kernel.persistent; }));
}

CUresult enumerate_own(void** out, unsigned wanted, const LoadedImage& image, const Container& container,
                       void* handle) {
  if (added_entries(image) == 0 || !out) return container.enumerate_entries(out, wanted, handle);
  unsigned total = 0;
  if (CUresult result = container.count_entries(&total, handle); result != CUDA_SUCCESS) return result;
  std::vector<void*> all(total);
  if (CUresult result = container.enumerate_entries(all.data(), total, handle); result != CUDA_SUCCESS) return result;
  debug("%u of %u entries of %s are told", wanted, total, image.label.c_str());
  std::vector<void*> added;
  for (const ImageKernel& kernel : image.listed) {
    void* entry = nullptr;
    const std::string name = kernel.added_entry();
    if (kernel.persistent && container.get_entry(&entry, handle, name.c_str()) == CUDA_SUCCESS) added.push_back(entry);
  }
  for (void* entry : all) {
    if (wanted == 0) break;
    if (std::find(added.begin(), added.end(), entry) != added.end()) continue;
    *out++ = entry;
    --wanted;
  }
  return CUDA_SUCCESS;
}

}  // namespace gpuslice
