// Ridge regression of a kernel's duration over its launch shape. It keeps running means and co-moments, so learning a
// launch takes constant time and space.
//
// What is to be small is the error over the duration, so a launch weighs the less the longer it is expected to take, by
// the square. It is not weighed by what it took: launches that a kernel's shape does not tell apart would then be
// predicted too short.
//
// The features are standardized before they are penalized; otherwise the penalty would depend on their units. The
// intercept is not penalized. A feature that never varied says nothing and is left out. Old launches fade (kMemory),
// because clocks, inputs and neighbours change.
#pragma once

#include <array>
#include <boost/json/fwd.hpp>
#include <cmath>
#include <optional>

#include "base/result.h"
#include "sched/temporal/job.h"

namespace gpuctl::sched {

/// What is known of a launch before it runs (FLEP 4.2).
struct LaunchShape {
  double blocks = 0;        ///< grid size, in block-tasks
  double threads = 0;       ///< per block
  double input_bytes = 0;   ///< memory into which its parameters point, as far as known
  double shared_bytes = 0;  ///< dynamic shared memory per block

  static constexpr std::size_t kFeatures = 5;
  /// FLEP's four, and one that grows as the work of a matrix product. That is the product of three lengths, where the
  /// blocks are that of two, and the bytes are a sum of such.
  std::array<double, kFeatures> features() const {
    return {blocks, threads, input_bytes, shared_bytes, std::sqrt(blocks) * input_bytes};
  }
};

class RidgeModel {
 public:
  /// A launch took `duration` by itself on the whole device.
  void learn(const LaunchShape& shape, Time duration);
  /// Empty before the first learn.
  std::optional<Time> predict(const LaunchShape& shape) const;
  boost::json::value to_json() const;
  /// Replaces what is known; on an error nothing changes.
  Result<void> from_json(const boost::json::value& state);

 private:
  static constexpr std::size_t kVariables = LaunchShape::kFeatures + 1;  // the last one is the duration, in ns
  using Vector = std::array<double, kVariables>;
  void solve() const;

  double launches_ = 0;  ///< seen, faded
  double weight_ = 0;    ///< of these, together
  Vector mean_{};
  std::array<Vector, kVariables> moment_{};  ///< sums of products of deviations, faded
  double least_ = 0, most_ = 0;              ///< durations seen, ns

  mutable bool solved_ = false;
  mutable std::array<double, LaunchShape::kFeatures> slope_{};  ///< ns per unit of the feature
};

}  // namespace gpuctl::sched
