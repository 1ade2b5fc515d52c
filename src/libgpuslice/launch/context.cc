#include "libgpuslice/launch/context.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "libgpuslice/client/client.h"
#include "libgpuslice/driver/driver.h"
#include "libgpuslice/driver/relaxed_capture.h"
#include "libgpuslice/driver/stage.h"
#include "libgpuslice/kernels/guard.h"
#include "libgpuslice/launch/divide.h"
#include "libgpuslice/launch/may_load.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::Polled;
using gpuctl::ptx::HostSlot;

namespace {

constexpr int kUsualDynamicShared = 48 * 1024;  ///< bytes; on every architecture

}  // namespace

Context::Context(CUcontext context, int device_index, std::uint32_t sms, Slots slots)
    : context_(context), view_(device_index, sms), slots_(std::move(slots)) {
  limits_.fill(gpuctl::kNoLimit);
  slots_.polled().capsm = ipc::kUnlimited;
  set_limits(slots_.polled());
}

Instance* Context::instance_of(KernelInfo& kernel) {
  std::lock_guard lock(kernel.mutex);
  for (const std::unique_ptr<Instance>& known : kernel.instances) {
    if (known->context == this) return known->persistent ? known.get() : nullptr;
  }
  if (kernel.late && kernel.launches.load(std::memory_order_relaxed) > 1 && !may_load_now()) return nullptr;
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
    quiesce();
    driver().cuFuncLoad(instance.persistent);
    resume_launches();
  }
  int registers = 0;
  driver().cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, instance.persistent);
  kernel.registers = registers;
  driver().cuFuncGetAttribute(&instance.max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, instance.persistent);
  int fixed_shared = 0;
  driver().cuDeviceGetAttribute(&instance.most_dynamic_shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                view_.device_index());
  driver().cuFuncGetAttribute(&fixed_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, instance.persistent);
  instance.most_dynamic_shared -= fixed_shared;
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

Stream& Context::stream_of(CUstream handle) {
  std::unique_ptr<Stream>& stream = streams_[stream_key(handle)];
  if (!stream) {
    stream = std::make_unique<Stream>();
    stream->handle = handle;
  }
  return *stream;
}

void Context::use_stream(CUstream stream) {
  if (guard() == Guard::kNever) return;
  std::unique_lock lock(mutex_);
  use_stream(lock, stream);
}

void Context::use_stream(std::unique_lock<std::mutex>& lock, CUstream handle) {
  if (several_streams_) return;
  const StreamKey key = stream_key(handle);
  if (only_stream_.value_or(key) == key) {
    only_stream_ = key;
    return;
  }
  several_streams_ = true;
  const auto has_guarded = [](const Stream* stream) {
    return std::any_of(stream->outstanding.begin(), stream->outstanding.end(),
                       [](const auto& launch) { return launch->guarded(); });
  };
  while (!ended() && std::any_of(active_.begin(), active_.end(), has_guarded)) wait_for_agent(lock);
}

std::uint32_t Context::allowed(const Stream& stream) const {
  return gpuctl::pack_range(view_.granted(), limits_[stream.limit]);
}

std::uint32_t Context::demand_of(const Launch& launch) const {
  const std::uint32_t claimed = std::min(ipc::load(slots_.host(launch.slot).progress), launch.args.total);
  const std::uint32_t chunks = (launch.args.total - claimed + launch.chunk - 1) / launch.chunk;
  return std::clamp((chunks + launch.per_sm - 1) / launch.per_sm, 1u, view_.sms());
}

/// The demand of the launches that run, or of the next launch if that is more. The next one begins as soon as those
/// that run are complete, and should not have to ask for SMs then.
std::uint32_t Context::demand_of(const Stream& stream) const {
  std::uint32_t running = 0;
  std::size_t heads = 0;
  stream.visit_heads([&](const Launch& head) {
    ++heads;
    const HostSlot& host = slots_.host(head.slot);
    if (ipc::load(host.started) && !ipc::load(host.done)) running += demand_of(head);
  });
  const std::size_t next = running > 0 ? heads : 0;
  const std::uint32_t waiting = next < stream.outstanding.size() ? demand_of(*stream.outstanding[next]) : 0;
  return std::clamp(running, waiting, view_.sms());
}

/// For a stream that is about to have outstanding launches. If there are more such streams than limits, some streams
/// have no limit of their own.
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
      demands.push_back({demand_of(*stream), stream->latency_critical});
    }
    const std::vector<Polled::Limit> limits = divide_grant(view_.granted(), demands);
    for (std::size_t i = 0; i < active_.size(); ++i) {
      if (active_[i]->limit != 0) limits_[active_[i]->limit] = limits[i];
    }
  }
  if (Polled* polled = view_.polled()) set_limits(*polled);
}

/// Workers read each limit as one word.
void Context::set_limits(Polled& polled) const {
  for (std::size_t i = 0; i < limits_.size(); ++i) __atomic_store(&polled.limits[i], &limits_[i], __ATOMIC_RELEASE);
}

void Context::publish_usage() {
  ipc::Usage* out = view_.usage();
  if (!out) return;
  std::uint32_t demand = 0;
  for (const Stream* stream : active_) demand += demand_of(*stream);
  demand = std::min(demand + opaque_demand_, view_.sms());
  const std::uint32_t wanted = view_.jobs();
  bool news = wanted != ipc::kNoJobs && tell_head(wanted);
  ipc::store(out->demand, demand);
  ipc::store(out->outstanding, outstanding_);
  // The daemon need not hear of demand that the current grant covers. But the daemon gives the SMs that other clients
  // leave idle to clients with known demand. So a client that begins with a part of the GPU reports its demand, once
  // for each size of that part.
  const std::uint32_t now = view_.granted();
  const bool part = now > view_.reserve() && now < view_.sms();
  news |= demand > told_demand_ && demand > now;
  news |= demand > 0 && told_demand_ == 0 && part && std::exchange(told_part_, now) != now;
  news |= wanted != ipc::kNoJobs && (demand == 0) != (told_demand_ == 0);
  news |= demand > told_demand_ && view_.tells_work();
  if (news) Client::get().kick();
  told_demand_ = demand;
}

void Context::opaque_started(std::uint64_t blocks, const OpaqueJob& job) {
  {
    std::lock_guard lock(mutex_);
    opaque_busy_.store(true);
    if (opaque_demand_ == 0 || opaque_job_.issued_ns == 0) opaque_job_ = job;
    opaque_demand_ = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::max<std::uint64_t>(opaque_demand_, blocks), view_.sms()));
    publish_usage();
  }
  if (agent_asleep_.load(std::memory_order_acquire)) wake_agent();
}

void Context::at_gate(Waiting& one) {
  std::lock_guard lock(mutex_);
  Waiting** last = &at_gate_;
  while (*last) last = &(*last)->next;
  *last = &one;
  publish_usage();
}

/// The launch that passes the gate counts as the job until the agent knows better.
void Context::past_gate(Waiting& one) {
  std::lock_guard lock(mutex_);
  Waiting** its = &at_gate_;
  while (*its != &one) its = &(*its)->next;
  *its = one.next;
  opaque_job_ = one.job;
}

bool Context::idle() {
  {
    std::lock_guard lock(mutex_);
    if (outstanding_ > 0) return false;
    // The agent clears opaque_busy_ while it looks at these kernels. Then opaque_demand_ still shows them.
    if (opaque_demand_ == 0 && !opaque_busy_.load()) return true;
  }
  CUcontext current = nullptr;  // of other contexts, what the agent knows is enough
  return driver().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context_ && opaque_.demand() == 0;
}

void Context::wake_agent() {
  agent_futex_.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &agent_futex_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Context::quiesce() {
  std::unique_lock lock(mutex_);
  ++quiescing_;
  while (outstanding_ > 0 && !ended()) wait_for_agent(lock);
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
  opaque_.stream_destroyed(handle);
  std::lock_guard lock(mutex_);
  auto found = streams_.find({handle, 0});
  if (found == streams_.end()) return;
  if (!found->second->outstanding.empty()) {
    orphans_.push_back(std::move(found->second));
  }
  streams_.erase(found);
}

}  // namespace gpuslice
