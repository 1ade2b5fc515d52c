// cuCtx*, cuDevicePrimaryCtx*.
#include <cuda.h>

#include "softgpu/device/printed.h"
#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

CUcontext handle_of(Context* context) {
  return reinterpret_cast<CUcontext>(context);
}

/// The context of a handle; nullptr stays nullptr. False if the handle is not valid.
bool find_context(Driver& driver, CUcontext handle, Context** context) {
  *context = driver.contexts.find(handle).get();
  return *context != nullptr || handle == nullptr;
}

CUresult create_context(CUcontext* result, unsigned flags, CUdevice device, const char* call = __builtin_FUNCTION()) {
  return with_driver(
      [&](Driver& driver) {
        if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
        Device* const where = driver.device(device);
        if (where == nullptr) return CUDA_ERROR_INVALID_DEVICE;
        Context* context = driver.create_context(flags, *where);
        context_stack().push_back(context);
        *result = handle_of(context);
        return CUDA_SUCCESS;
      },
      call);
}

/// Limits are accepted and remembered; none of them limits the interpreter.
std::atomic<std::size_t> limits[CU_LIMIT_MAX];

}  // namespace

extern "C" {

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* result, unsigned int flags, CUdevice device) {
  return create_context(result, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext* result, CUexecAffinityParam*, int affinities, unsigned int flags,
                                CUdevice device) {
  if (affinities != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create_context(result, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext* result, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
  if (parameters != nullptr && parameters->numExecAffinityParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (parameters != nullptr && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return create_context(result, flags, device);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext handle) {
  return with_driver([&](Driver& driver) {
    Context* context = nullptr;
    if (handle == nullptr || !find_context(driver, handle, &context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (context == driver.active_primary(context->device())) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_stack().empty() && context_stack().back() == context) context_stack().pop_back();
    driver.destroy_context(*context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext handle) {
  return with_driver([&](Driver& driver) {
    Context* context = nullptr;
    if (handle == nullptr || !find_context(driver, handle, &context)) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack().push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* result) {
  return with_driver([&](Driver&) {
    if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (result != nullptr) *result = handle_of(context_stack().back());
    context_stack().pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
  return with_driver([&](Driver& driver) {
    Context* context = nullptr;
    if (!find_context(driver, handle, &context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_stack().empty()) context_stack().pop_back();
    if (context != nullptr) context_stack().push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* result) {
  return with_driver([&](Driver&) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = context_stack().empty() ? nullptr : handle_of(context_stack().back());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return with_driver([&](Driver&) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (context_stack().empty() || context_stack().back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *device = context_stack().back()->device().ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSynchronize(void) {
  const WritesWhatWasPrinted writes;
  return with_context([](Driver& driver, Context& context) {
    if (const CUresult refused = driver.captures.check_wait_all(context); refused != CUDA_SUCCESS) return refused;
    context.synchronize();
    return context.error();
  });
}

CUresult CUDAAPI cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return with_driver([&](Driver& driver) {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    if (!find_context(driver, handle, &context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (context == nullptr && !context_stack().empty()) context = context_stack().back();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *id = context->id();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  return with_driver([&](Driver& driver) {
    Context* context = nullptr;
    if (!find_context(driver, handle, &context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int* flags) {
  return with_context([&](Driver&, Context& context) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = context.flags().load();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetFlags(unsigned int flags) {
  return with_context([&](Driver&, Context& context) {
    context.flags().store(flags);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return with_context([&](Driver&, Context&) {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
  return with_context([&](Driver&, Context&) {
    if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    limits[limit].store(value);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
  return with_context([&](Driver&, Context&) {
    if (value == nullptr || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    *value = limits[limit].load();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache* config) {
  return with_context([&](Driver&, Context&) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache) {
  return with_context([](Driver&, Context&) { return CUDA_SUCCESS; });
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice device) {
  return with_device(device, [&](Driver& driver, Device& where) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = handle_of(driver.retain_primary(where));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return with_device(device, [](Driver& driver, Device& where) { return driver.release_primary(where); });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return with_device(device, [](Driver& driver, Device& where) {
    driver.reset_primary(where);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return with_device(device, [&](Driver& driver, Device& where) {
    if (flags != nullptr) *flags = driver.primary_flags(where);
    if (active != nullptr) *active = driver.active_primary(where) != nullptr ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  return with_device(device, [&](Driver& driver, Device& where) {
    driver.set_primary_flags(where, flags);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
