// What bursts tell about a target for their 99th percentile. Of n bursts some n/100 may be longer than the target, and
// chance makes it more or less; so a few bursts tell only gross misses, and that a target is met takes hundreds. Pure.
#pragma once

#include <chrono>
#include <cstdint>

#include "sched/latency/histogram.h"

namespace gpuctl::sched {

/// How many were longer. Those in the same bucket as `target` count as if they were spread evenly over it.
double longer_than(const LatencyHistogram& bursts, std::chrono::nanoseconds target);

enum class Verdict { unknown, met, missed };

/// By order statistics: missed, if so many were longer as chance makes of a percentile that is met with the probability
/// `missed_by_chance` at most; met, if so few as chance makes of one that is missed with kMetByChance.
Verdict verdict_of(std::uint64_t count, double longer, double missed_by_chance);
inline constexpr double kMetByChance = 0.2;
/// With fewer bursts nothing is known to be met, although none was longer: 0.99^161 is 0.2.
inline constexpr std::uint64_t kTellsMet = 161;

/// The bursts under one setting of the dials: those of the latest one or two stretches. A stretch ends when it has
/// enough bursts, and has lasted for a while: bursts at the same instant have the same cause.
class Evidence {
 public:
  explicit Evidence(std::uint64_t stretch) : stretch_(stretch) {}

  /// `late`: one of them was longer than the target.
  void add(const LatencyHistogram& bursts, bool late, std::chrono::nanoseconds now);
  void clear() { *this = Evidence(stretch_); }

  const LatencyHistogram& bursts() const { return sum_; }
  std::uint64_t count() const { return sum_.count(); }
  /// Whether they came over so long a time that they need not all have the same cause.
  bool has_lasted() const { return latest_ - first_ >= kLeastStretch; }
  /// More than two stretches of bursts count as two. Nothing is missed by what was late at one or two looks: thousands
  /// of bursts may have waited for one thing. Nor is it met before a stretch could end.
  Verdict verdict(std::chrono::nanoseconds target, double missed_by_chance) const;

 private:
  static constexpr std::chrono::seconds kLeastStretch{1};
  static constexpr int kLateLooks = 3;

  std::uint64_t stretch_;
  LatencyHistogram before_, now_, sum_;
  int late_before_ = 0, late_now_ = 0;  ///< looks at which one was late
  std::chrono::nanoseconds first_{-1}, began_{-1}, latest_{};
};

}  // namespace gpuctl::sched
