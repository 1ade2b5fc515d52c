// What a simulation gives (simulate.h).
#pragma once

#include <cstdint>
#include <vector>

#include "sched/capsm.h"
#include "sched/instants.h"

namespace gpuctl::sched {

inline constexpr Time kEndOfTime{std::int64_t{1}
                                 << 62};  ///< 146 years: nothing happens later, so 64 bits hold every sum of two times

/// A run with more launches ends at once: a few hundred bytes are kept of each.
inline constexpr std::uint64_t kMostLaunches = 2'000'000;

/// One finished launch.
struct Launch {
  std::uint32_t application = 0;  ///< index into Workload::applications
  std::uint32_t instance = 0;
  std::uint32_t device = 0;
  std::int32_t priority = 0;
  std::uint32_t evictions = 0;
  Time arrived{}, finished{}, alone{}, waited{};
};

struct Outcome {
  std::vector<Launch> launches;  ///< in the order they finished
  std::vector<double> held;      ///< per application: CapSM x seconds held, without those being evicted
  double lost = 0;               ///< CapSM x seconds lost to evictions and dispatches
  std::uint64_t evictions = 0;   ///< each of all SMs of a job
  std::uint64_t decisions = 0;
  bool too_many = false;  ///< more than kMostLaunches: the rest is of no use
  Time end{};             ///< of the last launch that counts
};

}  // namespace gpuctl::sched
