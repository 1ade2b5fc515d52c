// Attributes of functions. The persistent form must have them too.
#include "libgpuslice/base/driver.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/interpose/note_after.h"
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
  return note_after(driver().cuFuncSetAttribute(function, attribute, value),
                    [&] { set_attribute_too(function, attribute, value); });
}

GPUSLICE_HOOK cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  return note_after(driver().cuKernelSetAttribute(attribute, value, kernel, device),
                    [&] { set_attribute_too(kernel, attribute, value); });
}

GPUSLICE_HOOK cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return note_after(driver().cuFuncSetCacheConfig(function, config), [&] { set_cache_config_too(function, config); });
}

GPUSLICE_HOOK cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  return note_after(driver().cuKernelSetCacheConfig(kernel, config, device),
                    [&] { set_cache_config_too(kernel, config); });
}
