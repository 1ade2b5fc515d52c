// How long the agent may nap while a launch runs whose end somebody waits for: the daemon, to give another client its
// turn. Looking at a launch costs little, but waking up to do so does; so the naps get shorter as the end comes nearer.
#pragma once

#include <cstdint>

namespace gpuslice {

/// What is looked at no more often.
inline constexpr std::uint64_t kShortestNapNs = 20'000;

/// One thread.
class EndWatch {
 public:
  /// `launch` counts the context's launches; `left_ns`: how long it still runs, as far as can be said, 0 when nothing
  /// can. Half of that, so that an estimate that is too long does no harm. When it should be over and is not: an eighth
  /// of how long that has been so.
  std::uint64_t nap_ns(std::uint64_t launch, std::uint64_t left_ns, std::uint64_t now_ns);

 private:
  std::uint64_t launch_ = 0;
  std::uint64_t due_ns_ = 0;  ///< since when the launch should be over; 0: it should not
};

}  // namespace gpuslice
