// What was counted lately, and all that ever was. Whoever samples adds what is new since the sample before; time is an
// argument.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include "sched/latency/histogram.h"

namespace gpuctl::sched {

class LatencyWindow {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr Nanoseconds kUsual = std::chrono::seconds{10};

  LatencyWindow() : LatencyWindow(kUsual) {}
  explicit LatencyWindow(Nanoseconds length) : step_(length / kSteps) {}

  /// `more` was counted since the last call. `now` does not go back.
  void add(Nanoseconds now, const LatencyHistogram& more) {
    total_ += more;
    if (more.count() == 0) return;
    const std::int64_t step = now / step_;
    Step& its = steps_[static_cast<std::size_t>(step) % steps_.size()];
    if (its.number != step) its = {.number = step, .histogram = {}};
    its.histogram += more;
  }

  /// What was added in the window that ends now; it is longer than asked for by at most a tenth.
  LatencyHistogram lately(Nanoseconds now) const { return since(now, now - step_ * kSteps); }

  /// What was added from `begin` on, if that is inside the window. Up to a tenth of the window before `begin` may be
  /// in it: whoever must not see that begins a new window.
  LatencyHistogram since(Nanoseconds now, Nanoseconds begin) const {
    const std::int64_t newest = now / step_, oldest = std::max(begin / step_, newest - kSteps);
    LatencyHistogram sum;
    for (const Step& step : steps_)
      if (step.number >= oldest && step.number <= newest) sum += step.histogram;
    return sum;
  }

  const LatencyHistogram& total() const { return total_; }

 private:
  static constexpr int kSteps = 10;
  struct Step {
    std::int64_t number = -1;  ///< time / step_; -1: never used
    LatencyHistogram histogram;
  };

  Nanoseconds step_;
  std::array<Step, kSteps + 1> steps_{};
  LatencyHistogram total_;
};

}  // namespace gpuctl::sched
