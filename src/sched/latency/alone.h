// What a slice's bursts take alone: learnt from times in which no other program has work on the GPU. Others are not
// paused for it: what they have queued would go on (docs/design/latency.md). Pure; time is an argument.
#pragma once

#include <chrono>
#include <cstdint>

#include "sched/latency/evidence.h"

namespace gpuctl::sched {

class Alone {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  /// As many bursts tell about what the percentile is.
  static constexpr std::uint64_t kEnough = 30;

  /// Bursts that began and ended while no other program had work.
  void add(const LatencyHistogram& bursts, Nanoseconds now) { bursts_.add(bursts, false, now); }

  bool known() const { return bursts_.count() >= kEnough; }
  std::uint64_t count() const { return bursts_.count(); }
  Nanoseconds p99() const { return bursts_.bursts().percentile(0.99).value_or(Nanoseconds{}); }

 private:
  Evidence bursts_{500};  ///< the latest 500 to 1000
};

}  // namespace gpuctl::sched
