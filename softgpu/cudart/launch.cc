// Launches and queries of kernels.
#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "softgpu/cudart/driver.h"
#include "softgpu/cudart/error.h"
#include "softgpu/cudart/registration.h"

using namespace gpuctl::softgpu::cudart;

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute) &&
              static_cast<int>(cudaLaunchAttributePriority) == static_cast<int>(CU_LAUNCH_ATTRIBUTE_PRIORITY));

namespace {

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};

/// The configurations that <<<...>>> pushes and the kernel's stub pops, in this thread. They are a stack, since an
/// argument may itself launch. Never destroyed: programs also launch in exit handlers, which run after the destructors
/// of thread_local objects.
std::vector<Configuration>& configurations_of_thread() {
  static thread_local auto* all = new std::vector<Configuration>;
  return *all;
}

/// Launches by `call(function)`. The runtime has its own error for an invalid launch configuration.
template <class Call>
cudaError_t launch(CUkernel kernel, Call&& call) {
  if (kernel == nullptr) return report(cudaErrorInvalidDeviceFunction);
  const CUresult entered = enter();
  if (entered != CUDA_SUCCESS) return report(entered);
  const CUresult result = call(reinterpret_cast<CUfunction>(kernel));
  return report(result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : static_cast<cudaError_t>(result));
}

/// The same with the kernel that a host function stands for.
template <class Call>
cudaError_t launch(const void* host_function, Call&& call) {
  CUresult result = CUDA_SUCCESS;
  const CUkernel kernel = find_kernel(host_function, &result);
  return result == CUDA_SUCCESS ? launch(kernel, std::forward<Call>(call)) : report(result);
}

/// The call that <<<...>>> stands for.
auto plain_call(dim3 grid, dim3 block, void** params, std::size_t shared, cudaStream_t stream) {
  return [=](CUfunction function) {
    return DRIVER(cuLaunchKernel)(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                  static_cast<unsigned>(shared), stream, params, nullptr);
  };
}

/// Runs `body(kernel)` with the kernel that a host function stands for.
template <class Body>
cudaError_t with_kernel(const void* host_function, Body&& body) {
  CUresult result = CUDA_SUCCESS;
  const CUkernel kernel = find_kernel(host_function, &result);
  if (result == CUDA_SUCCESS) result = enter();
  return report(result == CUDA_SUCCESS ? body(kernel) : result);
}

}  // namespace

extern "C" {

unsigned CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st* stream) {
  configurations_of_thread().push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  std::vector<Configuration>& configurations = configurations_of_thread();
  if (configurations.empty()) return report(cudaErrorMissingConfiguration);
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** params, size_t shared,
                                         cudaStream_t stream) {
  return launch(reinterpret_cast<CUkernel>(kernel), plain_call(grid, block, params, shared, stream));
}

cudaError_t CUDARTAPI cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** params, size_t shared,
                                       cudaStream_t stream) {
  return launch(function, plain_call(grid, block, params, shared, stream));
}

cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** params) {
  if (config == nullptr) return report(cudaErrorInvalidValue);
  const dim3 grid = config->gridDim, block = config->blockDim;
  // The runtime's attributes are the driver's by another name.
  const CUlaunchConfig driver_config{grid.x,
                                     grid.y,
                                     grid.z,
                                     block.x,
                                     block.y,
                                     block.z,
                                     static_cast<unsigned>(config->dynamicSmemBytes),
                                     config->stream,
                                     reinterpret_cast<CUlaunchAttribute*>(config->attrs),
                                     config->numAttrs};
  return launch(function,
                [&](CUfunction kernel) { return DRIVER(cuLaunchKernelEx)(&driver_config, kernel, params, nullptr); });
}

cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** params,
                                                  size_t shared, cudaStream_t stream) {
  return launch(function, [&](CUfunction kernel) {
    return DRIVER(cuLaunchCooperativeKernel)(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                             static_cast<unsigned>(shared), stream, params);
  });
}

cudaError_t CUDARTAPI cudaFuncGetName(const char** name, const void* function) {
  return with_kernel(function, [&](CUkernel kernel) { return DRIVER(cuKernelGetName)(name, kernel); });
}

cudaError_t CUDARTAPI cudaGetFuncBySymbol(cudaFunction_t* result, const void* function) {
  return with_kernel(function, [&](CUkernel kernel) { return DRIVER(cuKernelGetFunction)(result, kernel); });
}

cudaError_t CUDARTAPI cudaFuncGetAttributes(struct cudaFuncAttributes* attributes, const void* function) {
  return with_kernel(function, [&](CUkernel kernel) {
    *attributes = {};
    CUresult result = CUDA_SUCCESS;
    const auto get = [&](CUfunction_attribute attribute) {
      int value = 0;
      const CUresult got = DRIVER(cuKernelGetAttribute)(&value, attribute, kernel, current_device());
      if (got != CUDA_SUCCESS) result = got;
      return value;
    };
    attributes->sharedSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    attributes->constSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
    attributes->localSizeBytes = static_cast<std::size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->cacheModeCA = get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    return result;
  });
}

cudaError_t CUDARTAPI cudaFuncSetAttribute(const void* function, enum cudaFuncAttribute attribute, int value) {
  return with_kernel(function, [&](CUkernel kernel) {
    return DRIVER(cuKernelSetAttribute)(static_cast<CUfunction_attribute>(attribute), value, kernel, current_device());
  });
}

cudaError_t CUDARTAPI cudaFuncSetCacheConfig(const void* function, enum cudaFuncCache config) {
  return with_kernel(function, [&](CUkernel kernel) {
    return DRIVER(cuKernelSetCacheConfig)(kernel, static_cast<CUfunc_cache>(config), current_device());
  });
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                             int threads, size_t dynamic_shared,
                                                                             unsigned int flags) {
  return with_kernel(function, [&](CUkernel kernel) {
    return DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(blocks, reinterpret_cast<CUfunction>(kernel),
                                                                        threads, dynamic_shared, flags);
  });
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                                    size_t dynamic_shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic_shared, 0);
}

cudaError_t CUDARTAPI cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks,
                                                                int threads) {
  return with_kernel(function, [&](CUkernel kernel) {
    return DRIVER(cuOccupancyAvailableDynamicSMemPerBlock)(bytes, reinterpret_cast<CUfunction>(kernel), blocks,
                                                           threads);
  });
}

}  // extern "C"
