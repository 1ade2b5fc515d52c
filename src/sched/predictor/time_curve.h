// How a kernel scales: the time it takes by the SMs it has, learnt from whatever launches there are (SiM 3.5, where the
// points are profiled beforehand).
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

/// Learns a curve point by point. Not thread-safe.
class TimeCurve {
 public:
  /// The kernel was seen to take `ns` with `capsm`; any unit of work will do if it is always the same. Ignored when not
  /// above 0, or above 1e16.
  void learn(CapSM capsm, double ns);

  /// As measured, pruned: without those that use more CapSM and are hardly faster (SiM 3.5). Valid until the next learn
  /// or read.
  std::span<const CurvePoint> points() const { return points_; }

  /// A point for each number of CapSM up to `device`, or up to where more are known to be of no use; empty before two
  /// numbers have been measured: then nothing is known but that a kernel may scale. Between two points speeds are
  /// interpolated, below the first and above the last the kernel counts as scaling in proportion. So a number that was
  /// never tried looks worth trying above the points, and costly below them. Valid until the next call of any of these.
  std::span<const CurvePoint> filled(CapSM device);

  /// By point: CapSM, ns, how often it was measured, and how many measurements ago.
  boost::json::value to_json() const;
  /// Replaces everything. False, and nothing changes: `state` is none of to_json's.
  bool from_json(const boost::json::value& state);

 private:
  struct Measured {
    double ns = 0;
    std::uint64_t times = 0;
    std::uint64_t last = 0;  ///< count_ when it was measured
  };
  void forget();
  void refresh();

  std::map<std::uint32_t, Measured> measured_;  ///< by CapSM
  std::uint64_t count_ = 0;
  std::vector<CurvePoint> points_, filled_;
  CapSM filled_for_{};  ///< 0: filled_ is out of date
};

/// What of `points` (a curve as JobPolicy knows it, not empty) holds for any number of CapSM, above 0: the time in the
/// curve's own unit. Speeds are interpolated; below the first point in proportion, above the last as with that.
double time_with(std::span<const CurvePoint> points, CapSM capsm);

}  // namespace gpuctl::sched
