#include "softgpu/device/pacing.h"

#include <algorithm>
#include <thread>

#include "softgpu/table/device_limits.h"

namespace gpuctl::softgpu {
namespace {

using namespace std::chrono_literals;

/// A sleep costs the host 10 to 20 us, so a sleep is at least this long.
constexpr auto kWorthASleep = 1ms;
/// How long a sleep may go on after an abort.
constexpr auto kLookAtAbort = 10ms;

}  // namespace

BlockClock::BlockClock(std::uint32_t threads, std::uint64_t warp_instruction_ns, Clock::duration carried,
                       const std::atomic<bool>& abort)
    : abort_(abort),
      start_(Clock::now() + carried),
      instruction_ns_(static_cast<double>(warp_instruction_ns) / (occupied_threads(threads) / kWarpThreads)) {}

BlockClock::Clock::time_point BlockClock::due(std::uint64_t warp_instructions) const {
  const auto ns = static_cast<std::int64_t>(static_cast<double>(warp_instructions) * instruction_ns_);
  return start_ + std::chrono::nanoseconds(ns);
}

/// Sleeps until `end` or an abort. False if less than `least` is left until then, for which it does not sleep.
bool BlockClock::sleep_until(Clock::time_point end, Clock::duration least) const {
  while (!abort_.load(std::memory_order_relaxed)) {
    const Clock::time_point now = Clock::now();
    if (now >= end) break;
    if (end - now < least) return false;
    std::this_thread::sleep_until(std::min<Clock::time_point>(end, now + kLookAtAbort));
  }
  return true;
}

void BlockClock::pace(std::uint64_t warp_instructions) const {
  sleep_until(due(warp_instructions), kWorthASleep);
}

BlockClock::Clock::duration BlockClock::finish(std::uint64_t warp_instructions, bool may_carry) const {
  const Clock::time_point end = due(warp_instructions);
  if (sleep_until(end, may_carry ? kWorthASleep : Clock::duration{})) return {};
  return std::max(end - Clock::now(), Clock::duration{});
}

}  // namespace gpuctl::softgpu
