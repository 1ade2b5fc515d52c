// What was counted lately, and all that ever was. Whoever samples adds what is new since the sample before; time is an
// argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sched/latency/compact_counts.h"
#include "sched/latency/histogram.h"

namespace gpuctl::sched {

class LatencyWindow {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr Nanoseconds kUsual = std::chrono::seconds{10};

  static constexpr int kUsualSteps = 10;

  /// `steps`: with fewer it takes less memory, and knows less exactly where it begins.
  explicit LatencyWindow(Nanoseconds length = kUsual, int steps = kUsualSteps)
      : step_(length / steps), steps_(static_cast<std::size_t>(steps) + 1) {}

  /// `more` was counted since the last call. `now` does not go back.
  void add(Nanoseconds now, const LatencyHistogram& more) {
    if (more.count() == 0) return;
    total_.add(more);
    const std::int64_t step = now / step_;
    Step& its = steps_[static_cast<std::size_t>(step) % steps_.size()];
    if (its.number != step) its = {.number = step, .counts = {}};
    its.counts.add(more);
  }

  /// What was added in the window that ends now; it is longer than asked for by at most a step.
  LatencyHistogram lately(Nanoseconds now) const { return since(now, now - step_ * steps()); }

  /// What was added from `begin` on, if that is inside the window. Up to a step before `begin` may be in it: whoever
  /// must not see that begins a new window.
  LatencyHistogram since(Nanoseconds now, Nanoseconds begin) const {
    const std::int64_t newest = now / step_, oldest = std::max(begin / step_, newest - steps());
    LatencyHistogram sum;
    for (const Step& step : steps_)
      if (step.number >= oldest && step.number <= newest) step.counts.add_to(sum);
    return sum;
  }

  LatencyHistogram total() const {
    LatencyHistogram sum;
    total_.add_to(sum);
    return sum;
  }

 private:
  struct Step {
    std::int64_t number = -1;  ///< time / step_; -1: never used
    CompactCounts<std::uint32_t> counts;
  };
  std::int64_t steps() const { return static_cast<std::int64_t>(steps_.size()) - 1; }

  Nanoseconds step_;
  std::vector<Step> steps_;
  CompactCounts<std::uint64_t> total_;
};

}  // namespace gpuctl::sched
