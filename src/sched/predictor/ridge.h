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

#include "sched/predictor/model.h"

namespace gpuctl::sched {

class RidgeModel : public DurationModel {
 public:
  void learn(const LaunchShape& shape, Time duration) override;
  std::optional<Time> predict(const LaunchShape& shape) const override;
  boost::json::value to_json() const override;
  Result<void> from_json(const boost::json::value& state) override;

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

inline std::unique_ptr<DurationModel> make_ridge_model() {
  return std::make_unique<RidgeModel>();
}

}  // namespace gpuctl::sched
