#include "libgpuslice/modules/container.h"

#include <vector>

#include "libgpuslice/base/driver.h"

namespace gpuslice {

namespace {

CUresult load_module(void** handle, const void* code, const LoadOptions& asked) {
  return driver().cuModuleLoadDataEx(reinterpret_cast<CUmodule*>(handle), code, asked.count, asked.options,
                                     asked.values);
}

/// CU_LIBRARY_BINARY_IS_PRESERVED is left out: the program keeps its own image in memory, not this code. So the driver
/// must copy the code, or it would read freed memory when it loads a kernel at the kernel's first use.
CUresult load_library(void** handle, const void* code, const LoadOptions& asked) {
  std::vector<CUlibraryOption> options;
  std::vector<void*> values;
  for (unsigned i = 0; asked.library_options && i < asked.library_count; ++i) {
    if (asked.library_options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) continue;
    options.push_back(asked.library_options[i]);
    values.push_back(asked.library_values ? asked.library_values[i] : nullptr);
  }
  return driver().cuLibraryLoadData(reinterpret_cast<CUlibrary*>(handle), code, asked.options, asked.values,
                                    asked.count, options.data(), values.data(), static_cast<unsigned>(options.size()));
}

}  // namespace

const Container kModule = {
    .is_library = false,
    .load = load_module,
    .unload = [](void* handle) { return driver().cuModuleUnload(static_cast<CUmodule>(handle)); },
    .get_entry =
        [](void** entry, void* handle, const char* name) {
          return driver().cuModuleGetFunction(reinterpret_cast<CUfunction*>(entry), static_cast<CUmodule>(handle),
                                              name);
        },
    .count_entries =
        [](unsigned* count, void* handle) {
          return driver().cuModuleGetFunctionCount(count, static_cast<CUmodule>(handle));
        },
    .enumerate_entries =
        [](void** entries, unsigned count, void* handle) {
          return driver().cuModuleEnumerateFunctions(reinterpret_cast<CUfunction*>(entries), count,
                                                     static_cast<CUmodule>(handle));
        },
};

const Container kLibrary = {
    .is_library = true,
    .load = load_library,
    .unload = [](void* handle) { return driver().cuLibraryUnload(static_cast<CUlibrary>(handle)); },
    .get_entry =
        [](void** entry, void* handle, const char* name) {
          return driver().cuLibraryGetKernel(reinterpret_cast<CUkernel*>(entry), static_cast<CUlibrary>(handle), name);
        },
    .count_entries =
        [](unsigned* count, void* handle) {
          return driver().cuLibraryGetKernelCount(count, static_cast<CUlibrary>(handle));
        },
    .enumerate_entries =
        [](void** entries, unsigned count, void* handle) {
          return driver().cuLibraryEnumerateKernels(reinterpret_cast<CUkernel*>(entries), count,
                                                    static_cast<CUlibrary>(handle));
        },
};

}  // namespace gpuslice
