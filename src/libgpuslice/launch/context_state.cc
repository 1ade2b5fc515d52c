#include "libgpuslice/launch/context_state.h"

#include <utility>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver_errors.h"

namespace gpuslice {

namespace {

/// How long kernels keep their original form after the program's streams held up all streams of the agent.
constexpr std::uint64_t kCrowdedForNs = 10'000'000'000;

}  // namespace

ContextState::ContextState(CUcontext context, int device_index, std::uint32_t sms, Slots slots, Opaque::Owner& owner)
    : handle(context), view(device_index, sms), book(std::move(slots)), opaque(view, owner) {
  book.slots().polled().capsm = gpuctl::ipc::kUnlimited;
  limits.write_to(book.slots().polled());
}

void ContextState::note_result(CUresult result) {
  if (!breaks_context(result) || agent.ended()) return;
  debug("the driver says of the context on device %d: %s (%d); nothing is managed there any more", view.device_index(),
        error_name(result), result);
  agent.set_fault(result);
  end();
}

void ContextState::end() {
  if (!agent.set_ended()) return;
  usage.withdraw();
  agent.notify_change();
  agent.wake();
}

void ContextState::note_crowded() {
  crowded_until_ns_.store(monotonic_ns() + kCrowdedForNs);
}

bool ContextState::crowded() const {
  const std::uint64_t until = crowded_until_ns_.load(std::memory_order_relaxed);
  return until != 0 && monotonic_ns() < until;
}

}  // namespace gpuslice
