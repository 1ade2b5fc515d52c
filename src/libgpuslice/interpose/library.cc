// Libraries: like modules (module.cc), but they belong to no context.
#include "libgpuslice/client/client.h"
#include "libgpuslice/driver/driver.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/modules/load_image.h"
#include "libgpuslice/modules/own_entries.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

namespace {

/// The program's options for a library, other than those for the compiler, for loading other code in place of the
/// image. CU_LIBRARY_BINARY_IS_PRESERVED is left out: the program keeps its own image in memory, not that code. So the
/// driver must copy the code, or it would read freed memory when it loads a kernel at the kernel's first use.
struct LibraryOptions {
  LibraryOptions(const CUlibraryOption* given, void* const* given_values, unsigned count) {
    for (unsigned i = 0; given && i < count; ++i) {
      if (given[i] == CU_LIBRARY_BINARY_IS_PRESERVED) continue;
      names.push_back(given[i]);
      values.push_back(given_values ? given_values[i] : nullptr);
    }
  }
  std::vector<CUlibraryOption> names;
  std::vector<void*> values;
};

CUresult load_library(CUlibrary* out, const ImageToLoad& image, LibraryOptions about, std::function<CUresult()> plain) {
  return load_image(reinterpret_cast<void**>(out), image,
                    {.plain = std::move(plain),
                     .load =
                         [image, about = std::move(about)](void** library, const void* code) mutable {
                           return driver().cuLibraryLoadData(
                               reinterpret_cast<CUlibrary*>(library), code, const_cast<CUjit_option*>(image.options),
                               const_cast<void**>(image.values), image.count, about.names.data(), about.values.data(),
                               static_cast<unsigned>(about.names.size()));
                         },
                     .unload = [](void* library) { driver().cuLibraryUnload(static_cast<CUlibrary>(library)); }});
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                                unsigned count, CUlibraryOption* library_options, void** library_values,
                                unsigned library_count) {
  return load_library(
      library, {.data = code, .size = {}, .options = options, .values = values, .count = count, .is_library = true},
      {library_options, library_values, library_count}, [&] {
        return driver().cuLibraryLoadData(library, code, options, values, count, library_options, library_values,
                                          library_count);
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
  return load_library(library,
                      {.data = file->data(),
                       .size = file->size(),
                       .options = options,
                       .values = values,
                       .count = count,
                       .is_library = true},
                      {library_options, library_values, library_count}, plain);
}

GPUSLICE_HOOK cuLibraryUnload(CUlibrary library) {
  return nothrow([&] {
    join_all();
    QuiesceLaunches quiesced;
    const std::shared_ptr<LoadedImage> image = Modules::get().remove(library);
    const CUresult result = driver().cuLibraryUnload(library);
    unload_forms(image);
    return result;
  });
}

GPUSLICE_HOOK cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  CUresult result = driver().cuLibraryGetKernel(kernel, library, name);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return nothrow([&] {
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
  return nothrow([&] {
    return enumerate_own(kernels, count, library, driver().cuLibraryGetKernelCount, driver().cuLibraryEnumerateKernels,
                         driver().cuLibraryGetKernel);
  });
}

GPUSLICE_HOOK cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  CUresult result = driver().cuLibraryGetModule(module, library);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return nothrow([&] {
    if (std::shared_ptr<LoadedImage> image = Modules::get().find(library)) Modules::get().add(*module, image);
    return CUDA_SUCCESS;
  });
}

GPUSLICE_HOOK cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  CUresult result = driver().cuKernelGetFunction(function, kernel);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return nothrow([&] {
    if (std::shared_ptr<KernelInfo> known = Kernels::get().find_shared(kernel)) Kernels::get().add(*function, known);
    return CUDA_SUCCESS;
  });
}
