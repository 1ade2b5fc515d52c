#include "libgpuslice/agent/naps.h"

#include <algorithm>

#include <thread>

#include "libgpuslice/agent/awaited_end.h"
#include "libgpuslice/base/clock.h"

namespace gpuslice {

namespace {

/// While workers are wanted, an eviction is awaited or the program waits, the agent spins for this long, and then looks
/// this often.
constexpr std::uint64_t kSpinNs = 300'000;
constexpr std::uint64_t kShortTickNs = 50'000;
/// How long the agent keeps looking every tick after the last launch, so that a program with a launch every few
/// milliseconds does not pay a wake-up for each.
constexpr std::uint64_t kLingerNs = 100'000'000;
constexpr std::uint64_t kIdleNs = 250'000'000;

}  // namespace

bool Naps::work_lately(std::uint64_t now_ns) const {
  return now_ns - last_work_ns_ <= kLingerNs;
}

void Naps::look_for_ends() {
  longest_ns_ = UINT64_MAX;
  AwaitedEnd next;  // the earliest: after it the other streams are looked at again
  for (const Stream* stream : context_.book.active()) {
    const std::uint32_t sms = gpuctl::range_size(context_.limits.allowed(*stream));
    const AwaitedEnd end = awaited_end(*stream, context_.book.slots(), sms, context_.view.jobs());
    if (end.launch != 0 && (next.launch == 0 || end.left_ns < next.left_ns)) next = end;
  }
  if (next.launch != 0) longest_ns_ = planner_.nap_ns(next.launch, next.left_ns, monotonic_ns());
}

void Naps::sleep(std::uint32_t wake_ups_seen, std::uint32_t epoch_seen, bool busy) {
  const std::uint64_t now = monotonic_ns();
  if (busy || context_.agent.awaited()) {
    if (busy_since_ns_ == 0) busy_since_ns_ = now;
    if (now - busy_since_ns_ < kSpinNs) {
      std::this_thread::yield();
      return;
    }
  } else {
    busy_since_ns_ = 0;
  }
  std::uint64_t timeout = std::min(busy_since_ns_ != 0 ? kShortTickNs : kTickNs, longest_ns_);
  if (!work_lately(now)) {
    timeout = kIdleNs;
    context_.agent.fall_asleep();
    std::lock_guard lock(context_.book.mutex());
    if (context_.book.outstanding() > 0) timeout = 0;
  }
  if (timeout > 0) {
    const std::uint32_t* epoch = page_.grant() ? &page_.grant()->epoch : nullptr;
    context_.agent.sleep(wake_ups_seen, epoch, epoch_seen, timeout);
  }
  context_.agent.awake();
}

}  // namespace gpuslice
