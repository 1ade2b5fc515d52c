// Images: how the program loads them as modules or libraries (image_load.h), unloads them, and finds their kernels.
#include "libgpuslice/base/driver.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/interpose/note_after.h"
#include "libgpuslice/modules/image_load.h"
#include "libgpuslice/modules/modules.h"
#include "libgpuslice/modules/own_entries.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

namespace {

template <class Handle>
void** untyped(Handle* handles) {
  return reinterpret_cast<void**>(handles);
}

CUresult unload_image(const Container& container, void* handle) {
  return nothrow([&] {
    join_all();
    const QuiesceLaunches quiesced;
    const std::shared_ptr<LoadedImage> image = Modules::get().remove(handle);
    const CUresult result = container.unload(handle);
    // What may still be in the streams keeps its code.
    if (image && quiesced.quiet()) image->unload_beside();
    return result;
  });
}

CUresult get_entry(const Container& container, void** entry, void* handle, const char* name) {
  return note_after(container.get_entry(entry, handle, name), [&] {
    if (const auto image = Modules::get().find(handle)) register_kernel(*image, name, *entry, container.is_library);
  });
}

CUresult count_own(const Container& container, unsigned* count, void* handle) {
  const CUresult result = container.count_entries(count, handle);
  if (result != CUDA_SUCCESS) return result;
  if (const auto image = Modules::get().find(handle)) *count -= added_entries(*image);
  return result;
}

CUresult enumerate(const Container& container, void** entries, unsigned count, void* handle) {
  return nothrow([&] {
    const auto image = Modules::get().find(handle);
    return image ? enumerate_own(entries, count, *image, container, handle)
                 : container.enumerate_entries(entries, count, handle);
  });
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuModuleLoadData(CUmodule* module, const void* image) {
  return load_image({.container = &kModule, .out = untyped(module), .data = image, .plain = [&] {
                       return driver().cuModuleLoadData(module, image);
                     }});
}

GPUSLICE_HOOK cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                 void** values) {
  return load_image({.container = &kModule,
                     .out = untyped(module),
                     .data = image,
                     .options = {.options = options, .values = values, .count = count},
                     .plain = [&] { return driver().cuModuleLoadDataEx(module, image, count, options, values); }});
}

GPUSLICE_HOOK cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load_image({.container = &kModule, .out = untyped(module), .data = image, .plain = [&] {
                       return driver().cuModuleLoadFatBinary(module, image);
                     }});
}

GPUSLICE_HOOK cuModuleLoad(CUmodule* module, const char* path) {
  return load_image({.container = &kModule, .out = untyped(module), .path = path, .plain = [&] {
                       return driver().cuModuleLoad(module, path);
                     }});
}

GPUSLICE_HOOK cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                                unsigned count, CUlibraryOption* library_options, void** library_values,
                                unsigned library_count) {
  return load_image({.container = &kLibrary,
                     .out = untyped(library),
                     .data = code,
                     .options = {options, values, count, library_options, library_values, library_count},
                     .plain = [&] {
                       return driver().cuLibraryLoadData(library, code, options, values, count, library_options,
                                                         library_values, library_count);
                     }});
}

GPUSLICE_HOOK cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* options, void** values,
                                    unsigned count, CUlibraryOption* library_options, void** library_values,
                                    unsigned library_count) {
  return load_image({.container = &kLibrary,
                     .out = untyped(library),
                     .path = path,
                     .options = {options, values, count, library_options, library_values, library_count},
                     .plain = [&] {
                       return driver().cuLibraryLoadFromFile(library, path, options, values, count, library_options,
                                                             library_values, library_count);
                     }});
}

GPUSLICE_HOOK cuModuleUnload(CUmodule module) {
  return unload_image(kModule, module);
}

GPUSLICE_HOOK cuLibraryUnload(CUlibrary library) {
  return unload_image(kLibrary, library);
}

GPUSLICE_HOOK cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return get_entry(kModule, untyped(function), module, name);
}

GPUSLICE_HOOK cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return get_entry(kLibrary, untyped(kernel), library, name);
}

GPUSLICE_HOOK cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return count_own(kModule, count, module);
}

GPUSLICE_HOOK cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return count_own(kLibrary, count, library);
}

GPUSLICE_HOOK cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return enumerate(kModule, untyped(functions), count, module);
}

GPUSLICE_HOOK cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return enumerate(kLibrary, untyped(kernels), count, library);
}

GPUSLICE_HOOK cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return note_after(driver().cuLibraryGetModule(module, library), [&] {
    if (const auto image = Modules::get().find(library)) Modules::get().add(*module, image);
  });
}

GPUSLICE_HOOK cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return note_after(driver().cuKernelGetFunction(function, kernel), [&] {
    if (const auto known = Kernels::get().find_shared(kernel)) Kernels::get().add(*function, known);
  });
}
