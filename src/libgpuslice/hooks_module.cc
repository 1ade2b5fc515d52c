// Loading: the rewritten PTX, which holds the original entries and the persistent ones, is loaded instead of the image,
// so that globals and constants exist once. The program never sees the added entries.
#include <algorithm>
#include <fstream>
#include <iterator>

#include "libgpuslice/client.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/driver.h"
#include "libgpuslice/hooks.h"
#include "libgpuslice/modules.h"
#include "libgpuslice/quiet.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

namespace {

/// Compute capability of the current device, or of the first: libraries are loaded before there is a context.
unsigned device_sm() {
  CUdevice device = 0;
  int major = 0, minor = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) driver().cuDeviceGet(&device, 0);
  driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return static_cast<unsigned>(major * 10 + minor);
}

/// The program's JIT options, and the register limit recorded with the PTX.
struct JitOptions {
  std::vector<CUjit_option> names;
  std::vector<void*> values;

  JitOptions(const CUjit_option* given, void* const* given_values, unsigned count, int max_registers) {
    if (given && given_values) {
      names.assign(given, given + count);
      values.assign(given_values, given_values + count);
    }
    if (max_registers > 0 && std::find(names.begin(), names.end(), CU_JIT_MAX_REGISTERS) == names.end()) {
      names.push_back(CU_JIT_MAX_REGISTERS);
      values.push_back(reinterpret_cast<void*>(static_cast<std::uintptr_t>(max_registers)));
    }
  }
};

/// Makes the driver compile now what it would compile at the first use, while the plain image can still be loaded.
bool persistent_forms_load(const LoadedImage& image) {
  for (const ImageKernel& kernel : image.image.kernels) {
    if (!kernel.persistent) continue;
    const std::string name = kernel.name + gpuctl::ptx::kPersistentSuffix;
    if (image.library) {
      CUkernel found;
      return driver().cuLibraryGetKernel(&found, image.library, name.c_str()) == CUDA_SUCCESS;
    }
    CUfunction found;
    return driver().cuModuleGetFunction(&found, image.module, name.c_str()) == CUDA_SUCCESS;
  }
  return true;
}

/// `load(image, options)` loads into `out`; `unload(out)` undoes it; `plain()` is the program's own call.
template <class Handle, class Load, class Unload, class Plain>
CUresult load_image(Handle* out, Handle LoadedImage::*member, const void* data, std::optional<std::size_t> size,
                    const CUjit_option* options, void* const* values, unsigned count, Load load, Unload unload, Plain plain) {
  if (!Client::get().wanted() || !out || !data) return plain();
  return guarded([&] {
    Quiet quiet;
    auto image = std::make_shared<LoadedImage>();
    image->image = prepare_image(data, size, device_sm());
    if (!image->image.text.empty()) {
      JitOptions jit(options, values, count, image->image.max_registers);
      Handle handle{};
      CUresult result = load(&handle, image->image.text.c_str(), jit);
      if (result == CUDA_SUCCESS) {
        (*image).*member = handle;
        if (persistent_forms_load(*image)) {
          image->rewritten_ = true;
        } else {
          unload(handle);
          (*image).*member = nullptr;
        }
      }
      if (!image->rewritten_) {
        image->image.reason = "the driver refused the rewritten PTX (CUDA error " + std::to_string(result) + ")";
        debug("%s: %s", image->image.label.c_str(), image->image.reason.c_str());
      }
      image->image.text = {};
    }
    if (!image->rewritten_) {
      CUresult result = plain();
      if (result != CUDA_SUCCESS) return result;
      (*image).*member = *out;
    }
    *out = (*image).*member;
    Modules::get().add(*out, image);
    return CUDA_SUCCESS;
  });
}

template <class Plain>
CUresult load_module(CUmodule* out, const void* data, std::optional<std::size_t> size, CUjit_option* options, void** values,
                     unsigned count, Plain plain) {
  return load_image(
      out, &LoadedImage::module, data, size, options, values, count,
      [](CUmodule* module, const char* text, JitOptions& jit) {
        return driver().cuModuleLoadDataEx(module, text, static_cast<unsigned>(jit.names.size()), jit.names.data(), jit.values.data());
      },
      [](CUmodule module) { driver().cuModuleUnload(module); }, plain);
}

template <class Plain>
CUresult load_library(CUlibrary* out, const void* data, std::optional<std::size_t> size, CUjit_option* options, void** values,
                      unsigned count, CUlibraryOption* library_options, void** library_values, unsigned library_count, Plain plain) {
  return load_image(
      out, &LoadedImage::library, data, size, options, values, count,
      [&](CUlibrary* library, const char* text, JitOptions& jit) {
        return driver().cuLibraryLoadData(library, text, jit.names.data(), jit.values.data(), static_cast<unsigned>(jit.names.size()),
                                          library_options, library_values, library_count);
      },
      [](CUlibrary library) { driver().cuLibraryUnload(library); }, plain);
}

/// The bytes of a file, with a NUL behind them (PTX is text); nothing when it cannot be read.
std::optional<std::vector<char>> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  bytes.push_back('\0');
  return bytes;
}

/// How many entries were added to the image behind this handle.
unsigned added_entries(const std::shared_ptr<LoadedImage>& image) {
  if (!image || !image->rewritten()) return 0;
  return static_cast<unsigned>(std::count_if(image->image.kernels.begin(), image->image.kernels.end(),
                                             [](const ImageKernel& kernel) { return kernel.persistent; }));
}

template <class Handle, class Container, class Count, class Enumerate, class Find>
CUresult enumerate_own(Handle* out, unsigned wanted, Container container, Count count, Enumerate enumerate, Find find) {
  std::shared_ptr<LoadedImage> image = Modules::get().find(container);
  if (added_entries(image) == 0 || !out) return enumerate(out, wanted, container);
  unsigned total = 0;
  if (CUresult result = count(&total, container); result != CUDA_SUCCESS) return result;
  std::vector<Handle> all(total);
  if (CUresult result = enumerate(all.data(), total, container); result != CUDA_SUCCESS) return result;
  std::vector<Handle> ours;
  for (const ImageKernel& kernel : image->image.kernels) {
    Handle handle{};
    if (kernel.persistent && find(&handle, container, (kernel.name + gpuctl::ptx::kPersistentSuffix).c_str()) == CUDA_SUCCESS) {
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

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuModuleLoadData(CUmodule* module, const void* image) {
  return load_module(module, image, std::nullopt, nullptr, nullptr, 0, [&] { return driver().cuModuleLoadData(module, image); });
}

GPUSLICE_HOOK cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options, void** values) {
  return load_module(module, image, std::nullopt, options, values, count,
                     [&] { return driver().cuModuleLoadDataEx(module, image, count, options, values); });
}

GPUSLICE_HOOK cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load_module(module, image, std::nullopt, nullptr, nullptr, 0, [&] { return driver().cuModuleLoadFatBinary(module, image); });
}

GPUSLICE_HOOK cuModuleLoad(CUmodule* module, const char* path) {
  auto plain = [&] { return driver().cuModuleLoad(module, path); };
  std::optional<std::vector<char>> file = path && Client::get().wanted() ? read_file(path) : std::nullopt;
  if (!file) return plain();
  return load_module(module, file->data(), file->size(), nullptr, nullptr, 0, plain);
}

GPUSLICE_HOOK cuModuleUnload(CUmodule module) {
  return guarded([&] {
    Quiet quiet;
    Modules::get().remove(module);
    return driver().cuModuleUnload(module);
  });
}

GPUSLICE_HOOK cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  CUresult result = driver().cuModuleGetFunction(function, module, name);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return guarded([&] {
    if (std::shared_ptr<LoadedImage> image = Modules::get().find(module)) image->kernel(name, *function, false);
    return CUDA_SUCCESS;
  });
}

GPUSLICE_HOOK cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  CUresult result = driver().cuModuleGetFunctionCount(count, module);
  if (result == CUDA_SUCCESS) *count -= added_entries(Modules::get().find(module));
  return result;
}

GPUSLICE_HOOK cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return guarded([&] {
    return enumerate_own(functions, count, module, driver().cuModuleGetFunctionCount, driver().cuModuleEnumerateFunctions,
                         driver().cuModuleGetFunction);
  });
}

GPUSLICE_HOOK cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options, void** values, unsigned count,
                                CUlibraryOption* library_options, void** library_values, unsigned library_count) {
  return load_library(library, code, std::nullopt, options, values, count, library_options, library_values, library_count, [&] {
    return driver().cuLibraryLoadData(library, code, options, values, count, library_options, library_values, library_count);
  });
}

GPUSLICE_HOOK cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* options, void** values, unsigned count,
                                    CUlibraryOption* library_options, void** library_values, unsigned library_count) {
  auto plain = [&] {
    return driver().cuLibraryLoadFromFile(library, path, options, values, count, library_options, library_values, library_count);
  };
  std::optional<std::vector<char>> file = path && Client::get().wanted() ? read_file(path) : std::nullopt;
  if (!file) return plain();
  return load_library(library, file->data(), file->size(), options, values, count, library_options, library_values, library_count, plain);
}

GPUSLICE_HOOK cuLibraryUnload(CUlibrary library) {
  return guarded([&] {
    Quiet quiet;
    Modules::get().remove(library);
    return driver().cuLibraryUnload(library);
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
