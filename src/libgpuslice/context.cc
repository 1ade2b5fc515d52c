#include "libgpuslice/context.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "libgpuslice/agent.h"
#include "libgpuslice/client.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/divide.h"
#include "libgpuslice/driver.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::Polled;

namespace {

/// All managed contexts. Contexts live as long as the process: a kernel on its GPU may poll their memory at any time.
struct Registry {
  std::mutex mutex;
  std::vector<std::pair<CUcontext, Context*>> contexts;  ///< Context* null: management was tried and is not possible
};

Registry* registry() {
  static Registry* instance = new Registry;
  return instance;
}

std::atomic<std::uint64_t> g_generation{1};  ///< +1 when a CUcontext handle may mean something else

}  // namespace

std::uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

Context::Context(CUcontext context, int device_index, std::uint32_t sms, Slots slots)
    : context_(context), device_index_(device_index), sms_(sms), slots_(std::move(slots)) {
  limits_.fill(gpuctl::kNoLimit);
  slots_.polled().capsm = ipc::kUnlimited;
  set_limits(slots_.polled());
}

namespace {

/// The driver's own kernels (those behind cuMemset and some copies) are loaded at their first use, which blocks until the
/// device is idle: at a moment of the program's choice, perhaps while a launch is evicted. So they are used once now.
void load_driver_kernels(CUdeviceptr scratch) {
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
  CUdevice device = 0;
  int sms = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS ||
      driver().cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS || sms <= 0) {
    return nullptr;
  }
  gpuctl::Result<Slots> slots = Slots::create();
  if (!slots) {
    debug("context not managed: %s", slots.error().message.c_str());
    return nullptr;
  }
  load_driver_kernels(slots->device_address(0));  // all zero still
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
  }
  std::erase_if(all.contexts, [&](const auto& c) { return c.first == handle; });
  ++g_generation;
}

void Context::forget_after_fork() {
  new (registry()) Registry;
  ++g_generation;
}

Instance* Context::instance_of(KernelInfo& kernel) {
  std::lock_guard lock(kernel.mutex);
  for (const std::unique_ptr<Instance>& known : kernel.instances) {
    if (known->context == context_) return known->persistent ? known.get() : nullptr;
  }
  auto made = std::make_unique<Instance>();
  Instance& instance = *made;
  instance.kernel = &kernel;
  instance.context = context_;
  instance.persistent = kernel.persistent_function;
  if (kernel.persistent_kernel &&
      driver().cuKernelGetFunction(&instance.persistent, kernel.persistent_kernel) != CUDA_SUCCESS) {
    instance.persistent = nullptr;
  }
  kernel.instances.push_back(std::move(made));
  if (!instance.persistent) return nullptr;

  // Loading its code may block until the device is idle, so it must not happen at a launch beside evicted ones.
  if (driver().cuFuncLoad) {
    quiesce();
    driver().cuFuncLoad(instance.persistent);
    resume_launches();
  }
  int registers = 0;
  driver().cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, instance.persistent);
  kernel.registers = registers;
  driver().cuFuncGetAttribute(&instance.max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, instance.persistent);
  for (const auto& [attribute, value] : kernel.attributes) {
    if (instance.persistent) apply_attribute(instance, attribute, value);
  }
  if (instance.persistent && kernel.cache_config) driver().cuFuncSetCacheConfig(instance.persistent, *kernel.cache_config);
  return instance.persistent ? &instance : nullptr;
}

Stream& Context::stream_of(CUstream handle) {
  // Every thread has a per-thread default stream of its own behind the one handle.
  const unsigned long thread = handle == CU_STREAM_PER_THREAD ? static_cast<unsigned long>(pthread_self()) : 0;
  std::unique_ptr<Stream>& stream = streams_[{handle, thread}];
  if (!stream) {
    stream = std::make_unique<Stream>();
    stream->handle = handle;
  }
  return *stream;
}

std::uint32_t Context::granted() const {
  const Polled* polled = polled_.load(std::memory_order_acquire);
  return std::min(polled ? ipc::load(polled->capsm) : ipc::kUnlimited, sms_);
}

std::uint32_t Context::allowed(const Stream& stream) const { return gpuctl::pack_range(granted(), limits_[stream.limit]); }

const ipc::Grant* Context::grant() const {
  const ipc::Stub* stub = Client::get().stub();
  return stub && device_index_ < static_cast<int>(ipc::kMaxDevices) ? &stub->grant[device_index_] : nullptr;
}

std::uint32_t Context::idle_sms() const { return grant() ? std::min(ipc::load(grant()->idle), sms_) : 0; }

std::uint32_t Context::reserve() const { return grant() ? std::min(ipc::load(grant()->reserve), sms_) : 0; }

ipc::Usage* Context::usage() const {
  ipc::Stub* stub = Client::get().stub();
  return stub && device_index_ < static_cast<int>(ipc::kMaxDevices) ? &stub->usage[device_index_] : nullptr;
}

std::uint32_t Context::demand_of(const Launch& launch) const {
  const std::uint32_t claimed = std::min(ipc::load(slots_.host(launch.slot).progress), launch.args.total);
  const std::uint32_t chunks = (launch.args.total - claimed + launch.chunk - 1) / launch.chunk;
  return std::clamp((chunks + launch.per_sm - 1) / launch.per_sm, 1u, sms_);
}

/// For a stream that is about to have launches outstanding. With more of them than limits, some are not limited.
void Context::choose_limit(Stream& stream) const {
  stream.limit = 0;
  for (std::uint32_t limit = 1; limit < limits_.size() && stream.limit == 0; ++limit) {
    const auto has_it = [&](const Stream* other) { return other->limit == limit; };
    if (std::none_of(active_.begin(), active_.end(), has_it)) stream.limit = limit;
  }
}

void Context::divide_among_streams() {
  limits_.fill(gpuctl::kNoLimit);
  if (active_.size() > 1) {
    std::vector<StreamDemand> demands;
    for (const Stream* stream : active_) {
      demands.push_back({demand_of(*stream->outstanding.front()), stream->latency_critical});
    }
    const std::vector<Polled::Limit> limits = divide_grant(granted(), demands);
    for (std::size_t i = 0; i < active_.size(); ++i) {
      if (active_[i]->limit != 0) limits_[active_[i]->limit] = limits[i];
    }
  }
  if (Polled* polled = polled_.load(std::memory_order_relaxed)) set_limits(*polled);
}

/// Each limit is one word to those who poll.
void Context::set_limits(Polled& polled) const {
  for (std::size_t i = 0; i < limits_.size(); ++i) __atomic_store(&polled.limits[i], &limits_[i], __ATOMIC_RELEASE);
}

void Context::publish_usage() {
  ipc::Usage* out = usage();
  if (!out) return;
  std::uint32_t demand = 0;
  for (const Stream* stream : active_) demand += demand_of(*stream->outstanding.front());
  demand = std::min(demand, sms_);
  ipc::store(out->demand, demand);
  ipc::store(out->outstanding, outstanding_);
  // The daemon need not hear of demand that the standing grant covers.
  if (demand > told_demand_ && demand > granted()) Client::get().kick();
  told_demand_ = demand;
}

void Context::wake_agent() {
  agent_futex_.fetch_add(1, std::memory_order_release);
  Agent::wake(agent_futex_);
}

void Context::quiesce() {
  std::unique_lock lock(mutex_);
  ++quiescing_;
  while (outstanding_ > 0) wait_for_agent(lock);
}

void Context::wait_for_agent(std::unique_lock<std::mutex>& lock) {
  ++waiting_for_agent_;
  wake_agent();
  changed_.wait_for(lock, std::chrono::milliseconds(1));
  --waiting_for_agent_;
}

void Context::resume_launches() {
  std::lock_guard lock(mutex_);
  --quiescing_;
  changed_.notify_all();
}

void Context::set_latency_critical(CUstream stream, bool on) {
  std::lock_guard lock(mutex_);
  stream_of(stream).latency_critical = on;
  divide_if_shared();
  wake_agent();
}

void Context::stream_destroyed(CUstream handle) {
  std::lock_guard lock(mutex_);
  auto found = streams_.find({handle, 0});
  if (found == streams_.end()) return;
  if (!found->second->outstanding.empty()) {
    orphans_.push_back(std::move(found->second));
  }
  streams_.erase(found);
}

}  // namespace gpuslice
