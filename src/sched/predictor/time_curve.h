// How a kernel scales: the time it takes by the SMs it has, learnt from whatever launches there are (in SiM 3.5 the
// points are profiled beforehand).
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

/// Learns a curve point by point. Not thread-safe.
class TimeCurve {
 public:
  /// The kernel took `ns` with `capsm`, for any unit of work that is always the same. Ignored unless `ns` is above 0
  /// and at most 1e16.
  void learn(CapSM capsm, double ns);

  /// The measured points, without those that use more CapSM and are hardly faster (SiM 3.5). Valid until the next learn
  /// or read.
  std::span<const CurvePoint> points() const { return points_; }

  /// A point for each number of CapSM up to `device`, or up to where more are known to be of no use. Empty until two
  /// numbers have been measured: before, nothing is known but that a kernel may scale. Between two points speeds are
  /// interpolated; below the first and above the last the kernel counts as scaling in proportion. So a number that was
  /// never tried looks worth trying above the points, and costly below them. Valid until the next call of any of these.
  std::span<const CurvePoint> filled(CapSM device);

  /// For each point: CapSM, ns, how often it was measured, and how many measurements ago.
  boost::json::value to_json() const;
  /// Replaces everything. False, with nothing changed, if `state` is not from to_json.
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

/// What `points` (a curve as JobPolicy knows it, not empty) says for any number of CapSM above 0: the time in the
/// curve's own unit. Speeds are interpolated. Below the first point they are in proportion; above the last the time is
/// that of the last.
double time_with(std::span<const CurvePoint> points, CapSM capsm);

}  // namespace gpuctl::sched
