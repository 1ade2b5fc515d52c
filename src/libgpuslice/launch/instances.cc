// A context's copies of kernels.
#include <algorithm>
#include <mutex>
#include <optional>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/patience.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/base/stage.h"
#include "libgpuslice/launch/context.h"
#include "libgpuslice/launch/may_load.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

namespace {

constexpr std::uint64_t kLoadAgainNs = 60'000'000'000;
constexpr int kUsualDynamicShared = 48 * 1024;  ///< bytes; on every architecture

}  // namespace

/// The caller holds KernelInfo::mutex. `known`: whether it was tried to make one, in vain if null is returned.
Instance* Context::known_instance(KernelInfo& kernel, bool& known) const {
  const auto found = std::ranges::find(kernel.instances, this, [](const auto& one) { return one->context; });
  known = found != kernel.instances.end();
  return known && (*found)->persistent ? found->get() : nullptr;
}

Instance* Context::instance_of(KernelInfo& kernel) {
  {
    bool known = false;
    std::lock_guard lock(kernel.mutex);
    Instance* const instance = known_instance(kernel, known);
    if (known) return instance;
  }
  const std::uint64_t again = kernel.load_again_ns.load(std::memory_order_relaxed);
  const bool later = (again != 0 && monotonic_ns() < again) ||
                     (kernel.background && kernel.launches.load(std::memory_order_relaxed) > 1);
  if (later && !may_load_now()) return nullptr;
  return make_instance(kernel);
}

void Context::load_instance(KernelInfo& kernel) {
  make_instance(kernel);
}

/// KernelInfo::mutex is not held while this waits: the client's thread takes it, which rescues agents that are stuck.
Instance* Context::make_instance(KernelInfo& kernel) {
  const Stage stage("loading a persistent form before its first launch");
  // Only one thread makes it. It may be in the driver until this very thread has done something.
  const std::unique_lock making(kernel.making, Patience::kWhileItMayWait);
  if (!making.owns_lock()) return nullptr;
  {
    bool known = false;
    std::lock_guard lock(kernel.mutex);
    Instance* const instance = known_instance(kernel, known);
    if (known) return instance;
  }
  const RelaxedCapture relaxed;
  auto made = std::make_unique<Instance>();
  Instance& instance = *made;
  instance.kernel = &kernel;
  instance.context = this;
  instance.persistent = kernel.persistent_function;
  {
    // Loading its code may block until the device is idle. That must not happen beside evicted launches, since the
    // driver then holds what they need to resume. Nor beside what waits for the program: without us nothing would be
    // loaded here.
    std::optional<QuiesceLaunches> quiesced;
    if (kernel.persistent_kernel || !is_loaded(instance.persistent)) {
      quiesced.emplace(*this);
      if (!quiesced->quiet()) {
        kernel.load_again_ns = monotonic_ns() + kLoadAgainNs;
        return nullptr;
      }
    }
    if (kernel.persistent_kernel &&
        driver().cuKernelGetFunction(&instance.persistent, kernel.persistent_kernel) != CUDA_SUCCESS)
      instance.persistent = nullptr;
    if (instance.persistent && driver().cuFuncLoad) driver().cuFuncLoad(instance.persistent);
  }
  std::lock_guard lock(kernel.mutex);
  kernel.instances.push_back(std::move(made));
  if (!instance.persistent) return nullptr;
  int registers = 0, fixed = 0;
  driver().cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, instance.persistent);
  kernel.registers = registers;
  driver().cuFuncGetAttribute(&instance.max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, instance.persistent);
  driver().cuDeviceGetAttribute(&instance.most_dynamic_shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                state_.view.device_index());
  driver().cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, instance.persistent);
  instance.most_dynamic_shared -= fixed;
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
