// cuFunc*, cuOccupancy*.
#include <cuda.h>

#include <algorithm>

#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

template <class Body>
CUresult with_function(CUfunction handle, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_context(
      [&](Driver& driver, Context& context) {
        const std::shared_ptr<Function> function = driver.function(handle, context.device());
        return function == nullptr ? static_cast<CUresult>(CUDA_ERROR_INVALID_HANDLE) : body(driver, *function);
      },
      call);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return with_function(handle, [&](Driver&, Function& function) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : function.get_attribute(attribute, value);
  });
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return with_function(handle, [&](Driver&, Function& function) { return function.set_attribute(attribute, value); });
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache) {
  return with_function(handle, [](Driver&, Function&) { return CUDA_SUCCESS; });
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction handle) {
  return with_function(handle, [&](Driver&, Function& function) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = function.kernel->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* module, CUfunction handle) {
  return with_function(handle, [&](Driver&, Function& function) {
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *module = reinterpret_cast<CUmodule>(function.module);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* bytes) {
  return with_function(handle, [&](Driver&, Function& function) { return function.param_info(index, offset, bytes); });
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  return with_function(handle, [&](Driver& driver, Function& function) {
    if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool loaded = !driver.config.lazy_loading || function.loaded;
    *state = loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuFuncLoad(CUfunction handle) {
  return with_function(handle, [](Driver& driver, Function& function) {
    driver.uses(function, *context_stack().back());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int threads,
                                                             size_t dynamic_shared) {
  return with_function(handle, [&](Driver&, Function& function) {
    if (blocks == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = blocks_per_sm(*function.kernel, threads, dynamic_shared);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                                      size_t dynamic_shared, unsigned int flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic_shared);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction handle,
                                                  CUoccupancyB2DSize shared_of_block, size_t dynamic_shared,
                                                  int limit) {
  return with_function(handle, [&](Driver&, Function& function) {
    if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
    int largest = static_cast<int>(function.kernel->max_threads);
    if (limit > 0) largest = std::min(largest, limit);
    int best_threads = 0;
    int best_blocks = 0;
    // Tries whole warps, the largest block first, so that the largest of several with the same occupancy wins.
    for (int threads = largest; threads > 0;
         threads = (threads - 1) / static_cast<int>(kWarpThreads) * static_cast<int>(kWarpThreads)) {
      const std::size_t shared = shared_of_block != nullptr ? shared_of_block(threads) : dynamic_shared;
      const int blocks = blocks_per_sm(*function.kernel, threads, shared);
      if (blocks * threads > best_blocks * best_threads) {
        best_blocks = blocks;
        best_threads = threads;
      }
    }
    if (best_blocks == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    *block = best_threads;
    *grid = best_blocks * static_cast<int>(function.module->device->table->own_sms());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                           CUoccupancyB2DSize shared_of_block, size_t dynamic_shared,
                                                           int limit, unsigned int flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_of_block, dynamic_shared, limit);
}

CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks, int threads) {
  return with_function(handle, [&](Driver&, Function& function) {
    if (bytes == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    if (blocks > blocks_per_sm(*function.kernel, threads, 0)) return CUDA_ERROR_INVALID_VALUE;
    const std::uint32_t share = kSmShared / static_cast<std::uint32_t>(blocks) / kSharedGranule * kSharedGranule;
    *bytes = std::min(share - kBlockReservedShared, kBlockSharedOptin) - function.kernel->static_shared;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
