#include "libgpuslice/launch/agent_link.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <thread>
#include <utility>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/look_gate.h"

namespace gpuslice {

namespace {

/// Longest sleep on a system that cannot wait for two words at once.
constexpr std::uint64_t kWithoutWaitvNs = 1'000'000;

futex_waitv waiter(const void* word, std::uint32_t seen) {
  futex_waitv out{};
  out.val = seen;
  out.uaddr = reinterpret_cast<std::uintptr_t>(word);
  out.flags = FUTEX_32;
  return out;
}

}  // namespace

void AgentLink::wake() {
  wake_ups_.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &wake_ups_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void AgentLink::wait_for_change(std::unique_lock<std::mutex>& lock) {
  ++waiting_;
  wake();
  changed_.wait_for(lock, std::chrono::milliseconds(1));
  --waiting_;
}

void AgentLink::hold() {
  ++holds_;
  wake();
}

void AgentLink::release() {
  --holds_;
  wake();
}

bool AgentLink::wait_until_agent_is(AgentIs what, std::chrono::steady_clock::time_point until) const {
  for (;;) {
    const AgentIs now = agent_is_.load(std::memory_order_acquire);
    if (now == what || now == AgentIs::kOver) return true;
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

bool AgentLink::wait_patiently_until_agent_is(AgentIs what, std::chrono::nanoseconds patience) const {
  using Clock = std::chrono::steady_clock;
  do {
    while (LookGate::get().will_open() && !wait_until_agent_is(what, Clock::now()))  // for as long as it is frozen
      std::this_thread::sleep_for(LookGate::kPause);
    if (wait_until_agent_is(what, Clock::now() + patience)) return true;
  } while (LookGate::get().will_open());
  return false;
}

bool AgentLink::stuck_since_last_look(bool outstanding) {
  const AgentLook now{.calls = driver_calls_.count(), .outstanding = outstanding};
  return is_stuck(std::exchange(last_look_, now), now);
}

bool AgentLink::wait_while_held(AgentIs then) {
  for (;;) {
    if (ended()) return false;
    const std::uint32_t seen = wake_ups();
    if (holds_.load() == 0) {
      agent_is_.store(then);
      if (holds_.load() == 0) return true;  // otherwise a thread may already have seen it held
    }
    agent_is_.store(AgentIs::kHeld);
    sleep(seen, nullptr, 0, kHeldNs);
  }
}

void AgentLink::sleep(std::uint32_t wake_ups_seen, const std::uint32_t* also, std::uint32_t also_seen,
                      std::uint64_t timeout_ns) {
#ifndef SYS_futex_waitv
  constexpr long SYS_futex_waitv = 449;
#endif
  const futex_waitv waiters[] = {waiter(&wake_ups_, wake_ups_seen), waiter(also, also_seen)};
  const std::uint64_t until = monotonic_ns() + timeout_ns;
  timespec deadline{static_cast<time_t>(until / 1'000'000'000u), static_cast<long>(until % 1'000'000'000u)};
  if (syscall(SYS_futex_waitv, waiters, also ? 2u : 1u, 0, &deadline, CLOCK_MONOTONIC) < 0 && errno == ENOSYS) {
    // Linux before 5.16 has no futex_waitv: looks every tick instead.
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(timeout_ns, kWithoutWaitvNs)));
  }
}

}  // namespace gpuslice
