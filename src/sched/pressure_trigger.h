// Says when the time that work waited in a window passes a bound, as triggers of Linux' PSI do. Pure; time is an
// argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace gpuctl::sched {

class PressureTrigger {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  PressureTrigger(Nanoseconds stall, Nanoseconds window) : most_(stall), window_(window) {}

  /// `total`: for how long work has waited until now (Pressure::Kind). Whether that of the window that ends now is the
  /// bound or more, and was not told in that window. The first look only begins. Of the part of a window that was
  /// before its begin here, as much counts as that part is long; of more than a window since the latest look, the mean.
  bool passed(Nanoseconds total, Nanoseconds now);
  /// What work waited in the window up to the latest look.
  Nanoseconds stalled() const { return stalled_; }

 private:
  Nanoseconds most_, window_;
  std::optional<Nanoseconds> began_;  ///< a window
  Nanoseconds total_then_{};
  Nanoseconds before_{};  ///< what work waited in the window before that
  Nanoseconds stalled_{};
  std::optional<Nanoseconds> told_;
};

}  // namespace gpuctl::sched
