// A context's copies of kernels.
#include <algorithm>

#include "libgpuslice/driver/driver.h"
#include "libgpuslice/driver/relaxed_capture.h"
#include "libgpuslice/launch/context.h"
#include "libgpuslice/launch/may_load.h"
#include "libgpuslice/process/stage.h"

namespace gpuslice {

namespace {

constexpr int kUsualDynamicShared = 48 * 1024;  ///< bytes; on every architecture

}  // namespace

Instance* Context::instance_of(KernelInfo& kernel) {
  std::lock_guard lock(kernel.mutex);
  for (const std::unique_ptr<Instance>& known : kernel.instances) {
    if (known->context == this) return known->persistent ? known.get() : nullptr;
  }
  if (kernel.background && kernel.launches.load(std::memory_order_relaxed) > 1 && !may_load_now()) return nullptr;
  return make_instance(kernel);
}

void Context::load_instance(KernelInfo& kernel) {
  std::lock_guard lock(kernel.mutex);
  const auto here = [this](const std::unique_ptr<Instance>& known) { return known->context == this; };
  if (std::none_of(kernel.instances.begin(), kernel.instances.end(), here)) make_instance(kernel);
}

/// The caller holds KernelInfo::mutex.
Instance* Context::make_instance(KernelInfo& kernel) {
  const Stage stage("loading a persistent form before its first launch");
  const RelaxedCapture relaxed;
  auto made = std::make_unique<Instance>();
  Instance& instance = *made;
  instance.kernel = &kernel;
  instance.context = this;
  instance.persistent = kernel.persistent_function;
  if (kernel.persistent_kernel &&
      driver().cuKernelGetFunction(&instance.persistent, kernel.persistent_kernel) != CUDA_SUCCESS) {
    instance.persistent = nullptr;
  }
  kernel.instances.push_back(std::move(made));
  if (!instance.persistent) return nullptr;

  // Loading its code may block until the device is idle. That must not happen beside evicted launches, since the driver
  // then holds what they need to resume.
  if (driver().cuFuncLoad) {
    quiesce(TimePoint::max());
    driver().cuFuncLoad(instance.persistent);
    resume_launches();
  }
  driver().cuFuncGetAttribute(&instance.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, instance.persistent);
  kernel.registers = instance.registers;
  driver().cuFuncGetAttribute(&instance.max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, instance.persistent);
  driver().cuDeviceGetAttribute(&instance.most_dynamic_shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                state_.view.device_index());
  driver().cuFuncGetAttribute(&instance.fixed_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, instance.persistent);
  instance.most_dynamic_shared -= instance.fixed_shared;
  // The dynamic shared memory that every kernel may have unless its program sets another limit.
  if (kernel.words_behind)
    apply_attribute(instance, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kUsualDynamicShared);
  for (const auto& [attribute, value] : kernel.attributes) {
    if (instance.persistent) apply_attribute(instance, attribute, value);
  }
  if (instance.persistent && kernel.cache_config)
    driver().cuFuncSetCacheConfig(instance.persistent, *kernel.cache_config);
  return instance.persistent ? &instance : nullptr;
}

}  // namespace gpuslice
