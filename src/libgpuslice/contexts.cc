// Which contexts are managed.
#include <algorithm>

#include "libgpuslice/agent.h"
#include "libgpuslice/context.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/driver.h"
#include "libgpuslice/relaxed_capture.h"
#include "libgpuslice/stage.h"

namespace gpuslice {

namespace {

/// All managed contexts. Contexts live as long as the process: a kernel on its GPU may poll their memory at any time.
struct Registry {
  std::mutex mutex;
  std::vector<std::pair<CUcontext, Context*>> contexts;  ///< Context* null: management was tried and is not possible
  std::vector<Context*> forgotten;  ///< their handles may mean others by now
};

Registry* registry() {
  static Registry* instance = new Registry;
  return instance;
}

std::atomic<std::uint64_t> g_generation{1};  ///< +1 when a CUcontext handle may mean something else

/// The driver's own kernels (those behind cuMemset and some copies) are loaded at their first use, which blocks until
/// the device is idle: at a moment of the program's choice, perhaps while a launch is evicted. So they are used once
/// now.
void load_driver_kernels(CUdeviceptr scratch) {
  const Stage stage("loading the driver's own kernels");
  driver().cuMemsetD8_v2(scratch, 0, 64);
  if (driver().cuMemsetD16_v2) driver().cuMemsetD16_v2(scratch, 0, 32);
  if (driver().cuMemsetD32_v2) driver().cuMemsetD32_v2(scratch, 0, 16);
  if (driver().cuMemsetD2D8_v2) driver().cuMemsetD2D8_v2(scratch, 64, 0, 20, 4);
  if (driver().cuMemsetD2D16_v2) driver().cuMemsetD2D16_v2(scratch, 64, 0, 10, 4);
  if (driver().cuMemsetD2D32_v2) driver().cuMemsetD2D32_v2(scratch, 64, 0, 5, 4);
  if (driver().cuMemcpyDtoD_v2) driver().cuMemcpyDtoD_v2(scratch + 128, scratch, 64);
}

}  // namespace

Context* Context::create(CUcontext context) {
  const RelaxedCapture relaxed;
  const Stage stage("managing a context");
  CUdevice device = 0;
  int sms = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS ||
      driver().cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS ||
      sms <= 0) {
    return nullptr;
  }
  gpuctl::Result<Slots> slots = Slots::create();
  if (!slots) {
    debug("context not managed: %s", slots.error().message.c_str());
    return nullptr;
  }
  load_driver_kernels(slots->scratch());
  auto* created = new Context(context, device, static_cast<std::uint32_t>(sms), std::move(*slots));
  if (!Agent::start(*created)) {
    debug("context not managed: the driver lacks streams or stream memory operations");
    return nullptr;  // leaked on purpose: its memory belongs to a context that may be broken
  }
  debug("context managed: device %d, %d SMs", device, sms);
  return created;
}

Context* Context::current() {
  struct Last {
    CUcontext handle = nullptr;
    std::uint64_t generation = 0;
    Context* context = nullptr;
  };
  static thread_local Last last;
  CUcontext handle = nullptr;
  if (!driver().cuCtxGetCurrent || driver().cuCtxGetCurrent(&handle) != CUDA_SUCCESS || !handle) return nullptr;
  const std::uint64_t generation = g_generation.load(std::memory_order_acquire);
  if (handle == last.handle && generation == last.generation) return last.context;

  Registry& all = *registry();
  std::lock_guard lock(all.mutex);
  auto found = std::find_if(all.contexts.begin(), all.contexts.end(), [&](const auto& c) { return c.first == handle; });
  if (found == all.contexts.end()) {
    all.contexts.emplace_back(handle, create(handle));
    found = all.contexts.end() - 1;
  }
  last = {handle, generation, found->second};
  return found->second;
}

std::vector<Context*> Context::all() {
  Registry& all = *registry();
  std::lock_guard lock(all.mutex);
  std::vector<Context*> contexts;
  for (const auto& [handle, context] : all.contexts) {
    if (context) contexts.push_back(context);
  }
  return contexts;
}

void Context::forget(CUcontext handle) {
  Registry& all = *registry();
  std::lock_guard lock(all.mutex);
  for (auto& [known, context] : all.contexts) {
    if (known != handle || !context) continue;
    context->gone_ = true;
    context->wake_agent();
    all.forgotten.push_back(context);
  }
  std::erase_if(all.contexts, [&](const auto& c) { return c.first == handle; });
  ++g_generation;
}

void Context::forget_after_fork() {
  new (registry()) Registry;
  ++g_generation;
}

}  // namespace gpuslice
