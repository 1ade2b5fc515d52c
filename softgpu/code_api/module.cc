// cuModule*.
#include <cuda.h>

#include <fstream>
#include <iterator>

#include "softgpu/code/image.h"
#include "softgpu/code_api/jit_log.h"
#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

CUresult load(CUmodule* result, const void* image, const JitLog& log, const char* call = __builtin_FUNCTION()) {
  return with_context(
      [&](Driver& driver, Context& context) {
        if (result == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
        const LoadedImage loaded = load_image(image);
        log.write(loaded);
        if (!loaded.message.empty()) driver.debug(loaded.message);
        if (loaded.program == nullptr) return loaded.result;
        driver.loads_image(&context);
        if (context.error() != CUDA_SUCCESS) return context.error();
        const auto module = std::make_shared<Module>(loaded.program, context.device(), &context);
        driver.add_module(module);
        *result = reinterpret_cast<CUmodule>(module.get());
        return CUDA_SUCCESS;
      },
      call);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* result, const void* image, unsigned int count, CUjit_option* options,
                                    void** values) {
  return load(result, image, JitLog(count, options, values));
}

CUresult CUDAAPI cuModuleLoadData(CUmodule* result, const void* image) {
  return load(result, image, JitLog());
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* result, const void* image) {
  return load(result, image, JitLog());
}

CUresult CUDAAPI cuModuleLoad(CUmodule* result, const char* path) {
  return with_context([&](Driver&, Context&) {
    if (result == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    const std::string image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return load(result, image.c_str(), JitLog());
  });
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
  return with_context([&](Driver& driver, Context& context) {
    const std::shared_ptr<Module> module = driver.modules.find(handle);
    if (module == nullptr || module->context == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    context.synchronize();  // the variables are gone afterwards
    if (context.error() != CUDA_SUCCESS) return context.error();
    driver.remove_module(*module);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* result, CUmodule handle, const char* name) {
  return with_context([&](Driver& driver, Context&) {
    if (result == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Module> module = driver.modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const auto found = module->functions.find(name);
    if (found == module->functions.end()) return missing_function(*module, name);
    *result = reinterpret_cast<CUfunction>(found->second.get());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle, const char* name) {
  return with_context([&](Driver& driver, Context&) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Module> module = driver.modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const engine::Symbol* symbol = module->program->symbol(name);
    if (symbol == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = symbol->address;
    if (bytes != nullptr) *bytes = symbol->size;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  return with_context([&](Driver& driver, Context&) {
    const std::shared_ptr<Module> module = driver.modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(module->functions.size());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned int capacity, CUmodule handle) {
  return with_context([&](Driver& driver, Context&) {
    const std::shared_ptr<Module> module = driver.modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned index = 0;
    for (const auto& [name, function] : module->functions) {
      if (index == capacity) break;
      functions[index++] = reinterpret_cast<CUfunction>(function.get());
    }
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return with_driver([&](Driver& driver) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = driver.config.lazy_loading ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
