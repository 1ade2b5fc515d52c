// Which end of a launch the agent must not see late, and how long that launch still takes.
#pragma once

#include <cstdint>

#include "libgpuslice/launch/outstanding.h"
#include "libgpuslice/launch/slots.h"

namespace gpuslice {

/// How often the agent looks while launches are outstanding. It limits the precision of busy_ns and demand.
inline constexpr std::uint64_t kTickNs = 1'000'000;

struct AwaitedEnd {
  std::uint64_t launch = 0;   ///< its number; 0: no end is awaited
  std::uint64_t left_ns = 0;  ///< an estimate
};

/// What takes longer needs no watching: a nap is half of it, and no longer than a tick.
inline constexpr std::uint64_t kFarNs = 2 * kTickNs;

/// The end of the oldest launch is awaited where another job waits for it, and where the next launch was given too few
/// workers for the SMs that the stream may use by now: only the agent can add some, and not before that launch has
/// begun. Else, where jobs are reported, the end of the stream's last one is, unless it is far: when all streams have
/// ended another client may have the GPU. `sms`: how many the stream may use. With the book's mutex.
AwaitedEnd awaited_end(const Stream& stream, const Slots& slots, std::uint32_t sms, std::uint32_t jobs);

}  // namespace gpuslice
