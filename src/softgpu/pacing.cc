#include "softgpu/pacing.h"

#include <thread>

#include "softgpu/device_limits.h"

namespace gpuctl::softgpu {
namespace {

/// A sleep costs the host some microseconds, so a lead is slept off in pieces of at least this.
constexpr std::chrono::microseconds kWorthASleep{1000};

}  // namespace

BlockClock::BlockClock(std::uint32_t threads, std::uint64_t warp_instruction_ns)
    : start_(Clock::now()),
      instruction_ns_(static_cast<double>(warp_instruction_ns) / (occupied_threads(threads) / kWarpThreads)) {}

BlockClock::Clock::time_point BlockClock::due(std::uint64_t warp_instructions) const {
  const auto ns = static_cast<std::int64_t>(static_cast<double>(warp_instructions) * instruction_ns_);
  return start_ + std::chrono::nanoseconds(ns);
}

void BlockClock::pace(std::uint64_t warp_instructions) const {
  const Clock::time_point until = due(warp_instructions);
  if (until - Clock::now() >= kWorthASleep) std::this_thread::sleep_until(until);
}

void BlockClock::finish(std::uint64_t warp_instructions) const {
  std::this_thread::sleep_until(due(warp_instructions));
}

}  // namespace gpuctl::softgpu
