// How long the agent may nap while a launch runs whose end the daemon waits for, in order to give another client its
// turn. A look at a launch costs little, but waking up for it does. So naps get shorter as the end comes nearer.
#pragma once

#include <cstdint>

namespace gpuslice {

/// The agent naps at least this long.
inline constexpr std::uint64_t kShortestNapNs = 20'000;

/// One thread.
class NapPlanner {
 public:
  /// `launch` counts the context's launches. `left_ns` is an estimate of how long the launch still runs; 0: there is
  /// none. The nap is half of that, so that an estimate that is too long does no harm. If the launch should be over and
  /// is not, the nap is an eighth of the time since it should have been.
  std::uint64_t nap_ns(std::uint64_t launch, std::uint64_t left_ns, std::uint64_t now_ns);

 private:
  std::uint64_t launch_ = 0;
  std::uint64_t due_ns_ = 0;  ///< since when the launch should be over; 0: it is not due yet
};

}  // namespace gpuslice
