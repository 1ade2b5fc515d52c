// How the management of a context ends: by a fault on the GPU, with the context, or with the process.
//
// After a fault the driver refuses every call in the context with the same error, and memory that it shares with the GPU is
// gone when the context is. So whoever waits for launches there is let go, and the agent ends. The books keep what they
// hold: a thread of the program may be in the middle of a launch.
#include <thread>

#include "libgpuslice/context.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/driver_errors.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

void Context::heed(CUresult result) {
  if (!breaks_context(result) || ended()) return;
  debug("the driver says of the context on device %d: %s (%d); nothing is managed there any more", device_index_,
        error_name(result), result);
  fault_.store(result);
  end();
}

/// Any thread. The agent notices, and ends.
void Context::end() {
  if (ended_.exchange(true)) return;
  if (ipc::Usage* out = usage()) {
    ipc::store(out->demand, 0u);
    ipc::store(out->outstanding, 0u);
  }
  changed_.notify_all();
  wake_agent();
}

/// The context is about to be destroyed: its memory must not be touched after this.
void Context::end_with_agent() {
  end();
  wait_until_agent_is(AgentIs::kOver, std::chrono::steady_clock::now() + kPatience);
}

/// False: it is not so by then.
bool Context::wait_until_agent_is(AgentIs what, std::chrono::steady_clock::time_point until) {
  for (;;) {
    const AgentIs now = agent_is_.load(std::memory_order_acquire);
    if (now == what || now == AgentIs::kOver) return true;
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace gpuslice
