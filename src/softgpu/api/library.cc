// cuLibrary*, cuKernel*: code that belongs to no context. Each library has one copy of its variables.
#include <cuda.h>

#include <fstream>
#include <iterator>

#include "softgpu/api/jit_log.h"
#include "softgpu/driver.h"
#include "softgpu/image.h"

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

CUresult load(CUlibrary* result, const void* image, const JitLog& log, const char* call = __builtin_FUNCTION()) {
  return with_driver(
      [&](Driver& driver) {
        if (result == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const LoadedImage loaded = load_image(image);
        log.write(loaded);
        if (!loaded.message.empty()) driver.debug(loaded.message);
        if (loaded.program == nullptr) return loaded.result;
        driver.loads_image(nullptr);
        const auto library = std::make_shared<Library>();
        library->module = std::make_shared<Module>(loaded.program);
        for (const auto& [name, function] : library->module->functions) {
          auto kernel = std::make_shared<Kernel>();
          kernel->library = library.get();
          kernel->function = function;
          driver.kernels.add(kernel);
          library->kernels.emplace(name, std::move(kernel));
        }
        driver.add_module(library->module);
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
    driver.remove_module(*library->module);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* result, CUlibrary handle, const char* name) {
  return with_library(handle, [&](Driver&, Library& library) {
    if (result == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = library.kernels.find(name);
    if (found == library.kernels.end()) return missing_function(*library.module, name);
    *result = reinterpret_cast<CUkernel>(found->second.get());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* result, CUlibrary handle) {
  return with_library(handle, [&](Driver&, Library& library) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUmodule>(library.module.get());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle, const char* name) {
  return with_library(handle, [&](Driver&, Library& library) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const engine::Symbol* symbol = library.module->program->symbol(name);
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
    if (context_stack().back() != nullptr) driver.uses(*kernel.function, *context_stack().back());
    *result = reinterpret_cast<CUfunction>(kernel.function.get());
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
  return with_kernel(handle, [&](Driver&, Kernel& kernel) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return kernel.function->get_attribute(attribute, value);
  });
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  return with_kernel(handle, [&](Driver&, Kernel& kernel) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return kernel.function->set_attribute(attribute, value);
  });
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache, CUdevice device) {
  return with_kernel(handle, [&](Driver&, Kernel&) { return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; });
}

CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel handle) {
  return with_kernel(handle, [&](Driver&, Kernel& kernel) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel.function->kernel->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* bytes) {
  return with_kernel(handle,
                     [&](Driver&, Kernel& kernel) { return kernel.function->param_info(index, offset, bytes); });
}

}  // extern "C"
