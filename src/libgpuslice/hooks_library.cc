// Libraries: as modules (hooks_module.cc), but of no context.
#include "libgpuslice/driver.h"
#include "libgpuslice/hooks.h"
#include "libgpuslice/load_image.h"
#include "libgpuslice/own_entries.h"

namespace gpuslice {

namespace {

template <class Plain>
CUresult load_library(CUlibrary* out, const void* data, std::optional<std::size_t> size, CUjit_option* options,
                      void** values, unsigned count, CUlibraryOption* library_options, void** library_values,
                      unsigned library_count, Plain plain) {
  return load_image(
      out, &LoadedImage::library, data, size, options, values, count,
      [&](CUlibrary* library, const char* text, JitOptions& jit) {
        return driver().cuLibraryLoadData(library, text, jit.names(), jit.values(), jit.count(), library_options,
                                          library_values, library_count);
      },
      [](CUlibrary library) { driver().cuLibraryUnload(library); }, plain);
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                                unsigned count, CUlibraryOption* library_options, void** library_values,
                                unsigned library_count) {
  return load_library(library, code, std::nullopt, options, values, count, library_options, library_values,
                      library_count, [&] {
                        return driver().cuLibraryLoadData(library, code, options, values, count, library_options,
                                                          library_values, library_count);
                      });
}

GPUSLICE_HOOK cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* options, void** values,
                                    unsigned count, CUlibraryOption* library_options, void** library_values,
                                    unsigned library_count) {
  auto plain = [&] {
    return driver().cuLibraryLoadFromFile(library, path, options, values, count, library_options, library_values,
                                          library_count);
  };
  std::optional<std::vector<char>> file = path && Client::get().wanted() ? read_file(path) : std::nullopt;
  if (!file) return plain();
  return load_library(library, file->data(), file->size(), options, values, count, library_options, library_values,
                      library_count, plain);
}

GPUSLICE_HOOK cuLibraryUnload(CUlibrary library) {
  return guarded([&] {
    Quiet quiet;
    const std::shared_ptr<LoadedImage> image = Modules::get().remove(library);
    const CUresult result = driver().cuLibraryUnload(library);
    unload_forms(image);
    return result;
  });
}

GPUSLICE_HOOK cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  CUresult result = driver().cuLibraryGetKernel(kernel, library, name);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return guarded([&] {
    if (std::shared_ptr<LoadedImage> image = Modules::get().find(library)) image->kernel(name, *kernel, true);
    return CUDA_SUCCESS;
  });
}

GPUSLICE_HOOK cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  CUresult result = driver().cuLibraryGetKernelCount(count, library);
  if (result == CUDA_SUCCESS) *count -= added_entries(Modules::get().find(library));
  return result;
}

GPUSLICE_HOOK cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return guarded([&] {
    return enumerate_own(kernels, count, library, driver().cuLibraryGetKernelCount, driver().cuLibraryEnumerateKernels,
                         driver().cuLibraryGetKernel);
  });
}

GPUSLICE_HOOK cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  CUresult result = driver().cuLibraryGetModule(module, library);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return guarded([&] {
    if (std::shared_ptr<LoadedImage> image = Modules::get().find(library)) Modules::get().add(*module, image);
    return CUDA_SUCCESS;
  });
}

GPUSLICE_HOOK cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  CUresult result = driver().cuKernelGetFunction(function, kernel);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return guarded([&] {
    if (std::shared_ptr<KernelInfo> known = Kernels::get().find_shared(kernel)) Kernels::get().add(*function, known);
    return CUDA_SUCCESS;
  });
}
