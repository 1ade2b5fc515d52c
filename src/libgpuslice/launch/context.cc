#include "libgpuslice/launch/context.h"

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/patience.h"
#include "libgpuslice/streams/waiting_streams.h"

namespace gpuslice {

bool Context::wait_for_launches(std::unique_lock<std::mutex>& lock, Stream* stream, const std::function<bool()>& done,
                                std::optional<Patience::Limits> limits) {
  const auto may_wait = [&] {
    if (limits) return true;
    lock.unlock();  // the driver is asked
    const bool waits = !WaitingStreams::get().none();
    lock.lock();
    return waits;
  };
  const Patience::Limits its = limits.value_or(Patience::Limits{});
  Patience patience(its);
  while (!ended()) {
    if (done()) return true;
    const LaunchBook::Progress now = stream ? state_.book.progress_of(*stream) : state_.book.progress();
    if (stream && stream->gave_up == now.mark) return false;
    if (now.runs && view().granted() == 0) patience = Patience(its);  // it rests until something is granted
    if (patience.is_over(now.mark, now.runs, may_wait)) {
      if (stream) stream->gave_up = now.mark;
      debug("launches may wait for the program, so it goes on without waiting for them");
      return false;
    }
    state_.agent.wait_for_change(lock);
  }
  return false;
}

void Context::set_latency_critical(CUstream stream, bool on) {
  std::lock_guard lock(state_.book.mutex());
  state_.book.stream_of(stream).latency_critical = on;
  state_.limits.divide_if_shared();
  state_.agent.wake();
}

void Context::stream_destroyed(CUstream handle) {
  state_.opaque.stream_destroyed(handle);
  std::lock_guard lock(state_.book.mutex());
  state_.book.stream_destroyed(handle);
}

void Context::publish_usage() {
  std::lock_guard lock(state_.book.mutex());
  state_.usage.publish();
}

bool Context::quiesce(std::optional<Patience::Limits> limits) {
  std::unique_lock lock(state_.book.mutex());
  state_.book.stop();
  return wait_for_launches(
             lock, nullptr, [this] { return state_.book.outstanding() == 0; }, limits) ||
         ended();
}

void Context::resume_launches() {
  std::lock_guard lock(state_.book.mutex());
  state_.book.resume();
  state_.agent.notify_change();
}

bool Context::idle() {
  {
    std::lock_guard lock(state_.book.mutex());
    if (state_.book.outstanding() > 0) return false;
    if (state_.opaque_work.none()) return true;
  }
  CUcontext current = nullptr;  // of other contexts, what the agent knows is enough
  return driver().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == handle() && state_.opaque.demand() == 0;
}

void Context::opaque_started(std::uint64_t blocks, const OpaqueJob& job) {
  {
    std::lock_guard lock(state_.book.mutex());
    state_.opaque_work.begin(blocks, view().sms(), job, state_.opaque.must_wait());
    state_.usage.publish();
  }
  state_.agent.wake_if_asleep();
}

void Context::at_gate(Waiting& one) {
  std::lock_guard lock(state_.book.mutex());
  state_.opaque_work.enter_gate(one);
  state_.usage.publish();
}

void Context::past_gate(Waiting& one) {
  std::lock_guard lock(state_.book.mutex());
  state_.opaque_work.leave_gate(one);
}

}  // namespace gpuslice
