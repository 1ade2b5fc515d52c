// How the management of a context ends: with a fault on the GPU (ContextState::note_result), with the context, or with
// the process (agent/contexts.h).
//
// After a fault the driver refuses every call in the context with the same error. The memory that the driver shares
// with the GPU is gone once the context is gone. So threads that wait for launches there stop waiting, and the agent
// ends. The book keeps its entries, because a thread of the program may be in the middle of a launch.
#include "libgpuslice/base/debug.h"
#include "libgpuslice/launch/context.h"

namespace gpuslice {

void Context::rescue() {
  std::unique_lock lock(state_.book.mutex(), std::try_to_lock);
  if (!lock.owns_lock() || ended()) return;
  if (!state_.agent.stuck_since_last_look(state_.book.outstanding() > 0)) return;
  debug("the agent is stuck in the driver: what rests works after all");
  state_.note_crowded();
  state_.book.let_holders_work();
}

void Context::end_with_agent() {
  end_without_memory();
  let_holders_work();  // of what was not waited for; rescue() has finished, or will find that this has ended
}

void Context::end_without_memory() {
  state_.end();
  state_.agent.wait_patiently_until_agent_is(AgentLink::AgentIs::kOver);
}

void Context::let_holders_work() {
  std::lock_guard lock(state_.book.mutex());
  state_.book.let_holders_work();
}

}  // namespace gpuslice
