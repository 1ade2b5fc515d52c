// Attributes of functions. The persistent form must have them too.
#include "libgpuslice/client/client.h"
#include "libgpuslice/driver/driver.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/launch/context.h"

namespace gpuslice {

namespace {

/// Sets the attribute on the persistent form: now if that exists, or when it is made (Context::instance_of).
void set_attribute_too(const void* handle, CUfunction_attribute attribute, int value) {
  KernelInfo* kernel = Kernels::get().find(handle);
  if (!kernel || (!kernel->persistent && !kernel->background)) return;
  std::lock_guard lock(kernel->mutex);
  kernel->attributes[attribute] = value;
  for (const std::unique_ptr<Instance>& instance : kernel->instances) {
    if (instance->persistent) apply_attribute(*instance, attribute, value);
  }
}

void set_cache_config_too(const void* handle, CUfunc_cache config) {
  KernelInfo* kernel = Kernels::get().find(handle);
  if (!kernel || (!kernel->persistent && !kernel->background)) return;
  std::lock_guard lock(kernel->mutex);
  kernel->cache_config = config;
  for (const std::unique_ptr<Instance>& instance : kernel->instances) {
    if (instance->persistent) driver().cuFuncSetCacheConfig(instance->persistent, config);
  }
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  CUresult result = driver().cuFuncSetAttribute(function, attribute, value);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return nothrow([&] {
    set_attribute_too(function, attribute, value);
    return CUDA_SUCCESS;
  });
}

GPUSLICE_HOOK cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  CUresult result = driver().cuKernelSetAttribute(attribute, value, kernel, device);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return nothrow([&] {
    set_attribute_too(kernel, attribute, value);
    return CUDA_SUCCESS;
  });
}

GPUSLICE_HOOK cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  CUresult result = driver().cuFuncSetCacheConfig(function, config);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return nothrow([&] {
    set_cache_config_too(function, config);
    return CUDA_SUCCESS;
  });
}

GPUSLICE_HOOK cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  CUresult result = driver().cuKernelSetCacheConfig(kernel, config, device);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return nothrow([&] {
    set_cache_config_too(kernel, config);
    return CUDA_SUCCESS;
  });
}
