#include "libgpuslice/agent/contexts.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "libgpuslice/agent/activity.h"
#include "libgpuslice/agent/agent.h"
#include "libgpuslice/agent/swap.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/nothrow.h"
#include "libgpuslice/base/own_threads.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/base/stage.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/launch/may_load.h"
#include "libgpuslice/streams/stream_priority.h"
#include "libgpuslice/streams/waiting_streams.h"

namespace gpuslice {

namespace {

/// All managed contexts. Contexts live as long as the process: a kernel on the GPU may poll their memory at any time.
struct Registry {
  std::mutex mutex;
  std::vector<std::pair<CUcontext, Context*>> contexts;  ///< a null Context*: this context cannot be managed
  std::vector<Context*> forgotten;                       ///< their handles may name other contexts by now
};

Registry* registry() {
  static Registry* instance = new Registry;
  return instance;
}

std::atomic<bool> g_exiting{false};
/// Whether the process is about to become another program. kFailed: it is not; agents go back to work, and launches
/// still wait for that.
enum class Exec { kNone, kBegun, kFailed };
std::atomic<Exec> g_exec{Exec::kNone};
constexpr std::chrono::microseconds kShortPause{100};
std::atomic<pid_t> g_managed_by{0};          ///< the process that managed the first context here
std::atomic<pid_t> g_ends_before_driver{0};  ///< the process that called end_before_driver()
std::atomic<std::uint64_t> g_generation{1};  ///< +1 when a CUcontext handle may name another context

/// Uses the driver's own kernels (those behind cuMemset and some copies) once. The driver loads them at their first
/// use, which blocks until the device is idle. Without this the program would choose that moment, perhaps while a
/// launch is evicted.
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

/// Null when the context cannot be managed.
Context* create(CUcontext context) {
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
  if (!Agent::start(created->state())) {
    debug("context not managed: no thread, or the driver lacks streams or stream memory operations");
    return nullptr;  // leaked on purpose: its memory belongs to a context that may be broken
  }
  Contexts::end_before_driver();
  g_managed_by.store(getpid());
  debug("context managed: device %d, %d SMs", device, sms);
  return created;
}

}  // namespace

Context* Contexts::current() {
  struct Last {
    CUcontext handle = nullptr;
    std::uint64_t generation = 0;
    Context* context = nullptr;
  };
  static thread_local Last last;
  CUcontext handle = nullptr;
  const Driver& d = driver();
  if (!d.cuCtxGetCurrent || d.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || !handle) return nullptr;
  const std::uint64_t generation = g_generation.load(std::memory_order_acquire);
  const auto usable = [](Context* context) { return context && !context->ended() ? context : nullptr; };
  while (g_exec.load(std::memory_order_relaxed) != Exec::kNone && !exiting()) std::this_thread::sleep_for(kShortPause);
  if (handle == last.handle && generation == last.generation) return usable(last.context);

  if (exiting()) return nullptr;
  Registry& all = *registry();
  const auto find = [&] {
    return std::find_if(all.contexts.begin(), all.contexts.end(), [&](const auto& c) { return c.first == handle; });
  };
  std::unique_lock lock(all.mutex);
  auto found = find();
  if (found == all.contexts.end() && Activity::get().any()) {
    // The program has launched there already. Managing the context loads code and allocates memory, which may block
    // until the device is idle.
    lock.unlock();
    if (!nothing_waits()) return nullptr;
    lock.lock();
    found = find();
  }
  if (found == all.contexts.end()) {
    all.contexts.emplace_back(handle, nothrow([handle] { return create(handle); }, nullptr));
    found = all.contexts.end() - 1;
  }
  last = {handle, generation, found->second};
  return usable(found->second);
}

std::vector<Context*> Contexts::all() {
  Registry& all = *registry();
  std::lock_guard lock(all.mutex);
  std::vector<Context*> contexts;
  for (const auto& [handle, context] : all.contexts) {
    if (context && !context->ended()) contexts.push_back(context);
  }
  return contexts;
}

std::vector<LaunchSource*> launch_sources() {
  const std::vector<Context*> contexts = Contexts::all();
  return {contexts.begin(), contexts.end()};
}

namespace {

/// Takes all contexts for which `which(context)` is true out of the registry.
template <class Which>
std::vector<Context*> take_out(Which which) {
  Registry& all = *registry();
  std::lock_guard lock(all.mutex);
  std::vector<Context*> taken;
  std::erase_if(all.contexts, [&](const auto& known) {
    if (known.second && which(*known.second)) taken.push_back(known.second);
    return known.second ? which(*known.second) : false;
  });
  all.forgotten.insert(all.forgotten.end(), taken.begin(), taken.end());
  ++g_generation;
  return taken;
}

/// What is known of a context and its streams is forgotten. Returns it if it is managed.
std::vector<Context*> take_out(CUcontext handle) {
  WaitingStreams::get().forget(handle);
  Captures::get().forget(handle);
  StreamPriorities::get().forget(handle);
  {
    Registry& all = *registry();
    std::lock_guard lock(all.mutex);
    std::erase(all.contexts, std::pair<CUcontext, Context*>(handle, nullptr));
  }
  return take_out([handle](const Context& c) { return c.handle() == handle; });
}

/// The agents may call the driver for most of that time. What is left after that is for a call that has begun.
void end_own_calls_within(std::chrono::nanoseconds longest) {
  end_own_calls_at(monotonic_ns() + static_cast<std::uint64_t>(longest.count()) * 3 / 4);
}

/// Whether launches are on the GPU that the process has to wait for: workers read its memory, and would do so after its
/// end; and at exec those in original form. Needs no mutex: a signal may have interrupted the exiting thread while it
/// held one, and agents hold the book's all the time.
bool works(ContextState& context) {
  if (context.agent.ended() || context.view.mode() == gpuctl::ipc::Mode::turns) return false;
  return context.book.outstanding() > 0 || (Contexts::execs() && !context.opaque_work.none());
}

}  // namespace

void Contexts::forget(CUcontext handle) {
  for (Context* context : take_out(handle)) context->end_with_agent();
}

void Contexts::forget_gone(CUcontext handle) {
  for (Context* context : take_out(handle)) context->end_without_memory();
}

namespace {

/// Waits for a mutex that a signal may have taken from its holder.
std::unique_lock<std::mutex> lock_until(std::mutex& mutex, std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock.owns_lock() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kShortPause);
    lock = std::unique_lock(mutex, std::try_to_lock);
  }
  return lock;
}

/// Tells each context, and waits until its agent is `what`. The caller holds the registry's mutex.
template <class Tell>
void bring_agents(AgentLink::AgentIs what, std::chrono::steady_clock::time_point until, Tell tell) {
  const auto& contexts = registry()->contexts;
  for (const auto& [handle, context] : contexts) {
    if (context) tell(context->state());
  }
  for (const auto& [handle, context] : contexts) {
    if (context) context->state().agent.wait_until_agent_is(what, until);
  }
}

/// The same, for kLongestExit at most, or where there is work to wait for kLongestWork.
template <class Tell>
void bring_agents_to_an_end(AgentLink::AgentIs what, Tell tell) {
  auto until = std::chrono::steady_clock::now() + Contexts::kLongestExit;
  end_own_calls_within(Contexts::kLongestExit);
  Registry& all = *registry();
  const std::unique_lock lock = lock_until(all.mutex, until);
  if (!lock.owns_lock()) return;
  if (std::ranges::any_of(all.contexts, [](const auto& one) { return one.second && works(one.second->state()); })) {
    until += Contexts::kLongestWork;
    end_own_calls_within(Contexts::kLongestWork);
  }
  bring_agents(what, until, tell);
}

}  // namespace

void Contexts::end_all_at_exit() {
  Activity::get().count();
  if (!any_managed() || g_exiting.exchange(true)) return;
  bring_agents_to_an_end(AgentLink::AgentIs::kOver, [](ContextState& context) { context.end(); });
  Client::get().leave();
}

namespace {

/// Exit handlers of the program that run after this one may call the driver. While memory is on the host they would
/// wait there, and nobody would be left to bring it back.
void at_exit() {
  if (g_ends_before_driver.load() == getpid()) Swap::get().bring_back_for_good();
  Contexts::end_all_at_exit();
}

}  // namespace

bool Contexts::begin_exec() {
  if (!any_managed()) return false;
  const auto until = std::chrono::steady_clock::now() + kLongestWork;
  for (Exec none = Exec::kNone; !g_exec.compare_exchange_strong(none, Exec::kBegun); none = Exec::kNone) {
    if (exiting() || std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(kShortPause);
  }
  if (exiting()) return false;
  Activity::get().count();
  bring_agents_to_an_end(AgentLink::AgentIs::kHeld, [](ContextState& context) { context.agent.wake(); });
  Client::get().step_out();
  return true;
}

void Contexts::exec_failed() {
  if (exiting()) return;
  end_own_calls_at(0);
  Client::get().come_back();
  g_exec = Exec::kFailed;
  {
    const auto until = std::chrono::steady_clock::now() + AgentLink::kPatience;
    const std::unique_lock lock = lock_until(registry()->mutex, until);
    if (lock.owns_lock())
      bring_agents(AgentLink::AgentIs::kAtWork, until, [](ContextState& context) { context.agent.wake(); });
  }
  g_exec = Exec::kNone;
}

void Contexts::end_before_driver() {
  constexpr int kOftenEnough = 64;  // a program may make any number of contexts
  static std::atomic<int> times{0};
  g_ends_before_driver.store(getpid());
  const int before = times.fetch_add(1);
  if (before < kOftenEnough) std::atexit(&at_exit);
  if (before == 0) std::at_quick_exit(&at_exit);
}

bool Contexts::any_managed() {
  return g_managed_by.load(std::memory_order_relaxed) == getpid();
}

void Contexts::rescue_stuck() {
  for (Context* context : all()) context->rescue();
}

bool Contexts::exiting() {
  return g_exiting.load(std::memory_order_relaxed);
}

bool Contexts::execs() {
  return g_exec.load(std::memory_order_relaxed) == Exec::kBegun;
}

AgentsHeld::AgentsHeld(CUdevice device) {
  {
    Registry& all = *registry();
    std::lock_guard lock(all.mutex);
    for (const auto& [handle, context] : all.contexts) {
      if (context && context->view().device_index() == device) contexts_.push_back(context);
    }
  }
  for (Context* context : contexts_) {
    context->state().agent.hold();
    context->state().agent.wait_patiently_until_agent_is(AgentLink::AgentIs::kHeld);
    context->let_holders_work();
  }
}

AgentsHeld::~AgentsHeld() {
  for (Context* context : contexts_) context->state().agent.release();
}

void Contexts::make_registry() {
  static_cast<void>(registry());
}

void Contexts::forget_after_fork() {
  new (registry()) Registry;
  g_exec = Exec::kNone;
  ++g_generation;
}

}  // namespace gpuslice
