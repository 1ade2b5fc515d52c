// When others are paused for a moment, so that it is seen what a slice's bursts take alone: only where there are no
// quiet times, and for at most kPart of the time. A pause ends once enough is known, or when others do not become
// still: then it was in vain, and the next one comes the later. Pure; time is an argument.
#pragma once

#include <algorithm>
#include <chrono>

namespace gpuctl::sched {

class Pauses {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  /// Of the time from the begin of a pause to the begin of the next one.
  static constexpr double kPart = 0.01;
  /// So long it was wanted, and nobody was quiet by himself.
  static constexpr Nanoseconds kPatience = std::chrono::seconds{5};
  /// A pause lasts so long, and a step more, as it ends at a step. Long beside bursts that have a target, short beside
  /// what makes a program believe that its GPU hangs.
  static constexpr Nanoseconds kLongest = std::chrono::milliseconds{800};
  /// Others have to be still by then: what they had launched has ended.
  static constexpr Nanoseconds kBecomesStill = std::chrono::milliseconds{500};
  /// After each pause in vain the wait is three times as long, up to this many times.
  static constexpr int kMostVain = 3;

  struct Step {
    Nanoseconds now{};
    bool wanted = false;    ///< more is to be known, and others can be paused
    bool still = false;     ///< those that are paused have nothing left on the device
    Nanoseconds longest{};  ///< of the bursts that ended since the last step
  };
  /// True if all bursts that ended since the last step had the device to themselves.
  bool step(const Step& step) {
    const Nanoseconds before = last_;
    last_ = step.now;
    if (!step.wanted) wanted_since_ = kNever;
    if (step.wanted && wanted_since_ == kNever) wanted_since_ = step.now;
    if (!on_) {
      if (step.wanted && step.now >= wanted_since_ + kPatience && step.now >= not_before_) begin(step.now);
      return false;
    }
    if (!step.still) still_since_ = kNever;
    const bool counts = still_since_ != kNever && before - step.longest >= still_since_;
    if (step.still && still_since_ == kNever) still_since_ = step.now;
    saw_any_ |= counts;
    const Nanoseconds most = still_since_ == kNever ? kBecomesStill : kLongest;
    if (!step.wanted || step.now - began_ >= most) end(step.now);
    return counts;
  }

  bool on() const { return on_; }
  /// How many pauses in a row showed nothing.
  int vain() const { return vain_; }

 private:
  static constexpr Nanoseconds kNever{-1};

  void begin(Nanoseconds now) {
    on_ = true;
    saw_any_ = false;
    began_ = now;
    still_since_ = kNever;
  }
  void end(Nanoseconds now) {
    on_ = false;
    vain_ = saw_any_ ? 0 : std::min(vain_ + 1, kMostVain);
    double wait = static_cast<double>((now - began_).count()) * (1 / kPart - 1);
    for (int i = 0; i < vain_; ++i) wait *= 3;
    not_before_ = now + Nanoseconds(static_cast<Nanoseconds::rep>(wait));
  }

  bool on_ = false, saw_any_ = false;
  int vain_ = 0;
  Nanoseconds began_{}, last_{}, not_before_{}, still_since_ = kNever, wanted_since_ = kNever;
};

}  // namespace gpuctl::sched
