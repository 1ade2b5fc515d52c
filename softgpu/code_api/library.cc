// cuLibrary*, cuKernel*: code that belongs to no context. Each library has one copy of its variables on each device.
#include <cuda.h>

#include <fstream>
#include <iterator>

#include "softgpu/code/image.h"
#include "softgpu/code_api/jit_log.h"
#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

template <class Body>
CUresult with_library(CUlibrary handle, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_found(&Driver::libraries, handle, body, call);
}

template <class Body>
CUresult with_kernel(CUkernel handle, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_found(&Driver::kernels, handle, body, call);
}

/// The device of the current context; the first device if there is none.
const Device& current_device(const Driver& driver) {
  const bool current = !context_stack().empty() && context_stack().back() != nullptr;
  return current ? context_stack().back()->device() : *driver.devices.front();
}

const Module& module_here(const Driver& driver, const Library& library) {
  return *library.modules[static_cast<std::size_t>(current_device(driver).ordinal)];
}

CUresult load(CUlibrary* result, const void* image, const JitLog& log, const char* call = __builtin_FUNCTION()) {
  return with_driver(
      [&](Driver& driver) {
        if (result == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
        LoadedImage loaded = load_image(image);
        log.write(loaded);
        if (!loaded.message.empty()) driver.debug(loaded.message);
        if (loaded.program == nullptr) return loaded.result;
        driver.loads_image(nullptr);
        const auto library = std::make_shared<Library>();
        for (const auto& device : driver.devices) {
          if (loaded.program == nullptr) loaded = load_image(image);
          library->modules.push_back(std::make_shared<Module>(std::exchange(loaded.program, nullptr), *device));
          for (const auto& [name, function] : library->modules.back()->functions) {
            std::shared_ptr<Kernel>& kernel = library->kernels[name];
            if (kernel == nullptr) kernel = std::make_shared<Kernel>(Kernel{library.get(), {}});
            kernel->functions.push_back(function);
          }
        }
        for (const auto& [name, kernel] : library->kernels) driver.kernels.add(kernel);
        for (const auto& module : library->modules) driver.add_module(module);
        *result = driver.libraries.add(library);
        return CUDA_SUCCESS;
      },
      call);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* result, const void* image, CUjit_option* options, void** values,
                                   unsigned int count, CUlibraryOption*, void**, unsigned int) {
  return load(result, image, JitLog(count, options, values));
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* result, const char* path, CUjit_option* options, void** values,
                                       unsigned int count, CUlibraryOption*, void**, unsigned int) {
  return with_driver([&](Driver&) {
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    const std::string image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return load(result, image.c_str(), JitLog(count, options, values));
  });
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary handle) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<Library> library = driver.libraries.remove(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    driver.synchronize_all();  // the variables are gone afterwards
    for (const auto& [name, kernel] : library->kernels) driver.kernels.remove(reinterpret_cast<CUkernel>(kernel.get()));
    for (const auto& module : library->modules) driver.remove_module(*module);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* result, CUlibrary handle, const char* name) {
  return with_library(handle, [&](Driver&, Library& library) {
    if (result == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = library.kernels.find(name);
    if (found == library.kernels.end()) return missing_function(*library.modules.front(), name);
    *result = reinterpret_cast<CUkernel>(found->second.get());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* result, CUlibrary handle) {
  return with_library(handle, [&](Driver& driver, Library& library) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUmodule>(const_cast<Module*>(&module_here(driver, library)));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle, const char* name) {
  return with_library(handle, [&](Driver& driver, Library& library) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const engine::Symbol* symbol = module_here(driver, library).program->symbol(name);
    if (symbol == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = symbol->address;
    if (bytes != nullptr) *bytes = symbol->size;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  return with_library(handle, [&](Driver&, Library& library) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(library.kernels.size());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int capacity, CUlibrary handle) {
  return with_library(handle, [&](Driver&, Library& library) {
    if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned index = 0;
    for (const auto& [name, kernel] : library.kernels) {
      if (index == capacity) break;
      kernels[index++] = reinterpret_cast<CUkernel>(kernel.get());
    }
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction* result, CUkernel handle) {
  return with_kernel(handle, [&](Driver& driver, Kernel& kernel) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    Function& function = *kernel.on(current_device(driver));
    if (context_stack().back() != nullptr) driver.uses(function, *context_stack().back());
    *result = reinterpret_cast<CUfunction>(&function);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* result, CUkernel handle) {
  return with_kernel(handle, [&](Driver&, Kernel& kernel) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUlibrary>(kernel.library);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
  return with_kernel(handle, [&](Driver& driver, Kernel& kernel) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const Device* where = driver.device(device);
    return where == nullptr ? CUDA_ERROR_INVALID_DEVICE : kernel.on(*where)->get_attribute(attribute, value);
  });
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  return with_kernel(handle, [&](Driver& driver, Kernel& kernel) {
    const Device* where = driver.device(device);
    return where == nullptr ? CUDA_ERROR_INVALID_DEVICE : kernel.on(*where)->set_attribute(attribute, value);
  });
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache, CUdevice device) {
  return with_kernel(handle, [&](Driver& driver, Kernel&) {
    return driver.device(device) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel handle) {
  return with_kernel(handle, [&](Driver&, Kernel& kernel) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel.functions.front()->kernel->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* bytes) {
  return with_kernel(
      handle, [&](Driver&, Kernel& kernel) { return kernel.functions.front()->param_info(index, offset, bytes); });
}

}  // extern "C"
