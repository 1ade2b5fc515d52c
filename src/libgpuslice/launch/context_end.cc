// How the management of a context ends: with a fault on the GPU, with the context, or with the process.
//
// After a fault the driver refuses every call in the context with the same error. The memory that the driver shares
// with the GPU is gone once the context is gone. So threads that wait for launches there stop waiting, and the agent
// ends. The books keep their entries, because a thread of the program may be in the middle of a launch.
#include <thread>
#include <utility>

#include "libgpuslice/driver/debug.h"
#include "libgpuslice/driver/driver_errors.h"
#include "libgpuslice/launch/context.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

void Context::note_result(CUresult result) {
  if (!breaks_context(result) || ended()) return;
  debug("the driver says of the context on device %d: %s (%d); nothing is managed there any more", view_.device_index(),
        error_name(result), result);
  fault_.store(result);
  end();
}

void Context::rescue() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || ended()) return;
  const AgentLook now{.calls = driver_calls_.count(), .outstanding = outstanding_ > 0};
  if (!is_stuck(std::exchange(seen_by_rescue_, now), now)) return;
  debug("the agent is stuck in the driver: what rests works after all");
  crowded_until_ns_.store(monotonic_ns() + kCrowdedForNs);
  let_holders_work();
}

/// With mutex_. Holders that rest work though nothing may be granted to them: no other workers will come.
void Context::let_holders_work() {
  for (const Stream* stream : active_) {
    for (const auto& launch : stream->outstanding) ipc::store(slots_.host(launch->slot).lone, 1u);
  }
}

/// Any thread. The agent notices this and ends.
void Context::end() {
  if (ended_.exchange(true)) return;
  if (ipc::Usage* out = view_.usage()) {
    ipc::store(out->demand, 0u);
    ipc::store(out->outstanding, 0u);
  }
  changed_.notify_all();
  wake_agent();
}

/// For a context that is about to be destroyed. Nothing touches its memory after this.
void Context::end_with_agent() {
  end();
  wait_until_agent_is(AgentIs::kOver, std::chrono::steady_clock::now() + kPatience);
  std::lock_guard lock(mutex_);  // now rescue() has finished, or will find that this has ended
}

/// Returns false if the agent does not reach that state in time.
bool Context::wait_until_agent_is(AgentIs what, std::chrono::steady_clock::time_point until) {
  for (;;) {
    const AgentIs now = agent_is_.load(std::memory_order_acquire);
    if (now == what || now == AgentIs::kOver) return true;
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace gpuslice
