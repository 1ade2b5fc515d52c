// The plug-in point for duration models. A model belongs to one kernel, learns from its finished launches one by one,
// and can write down what it knows. ridge.h is the built-in one; another one is one more class and one more factory.
#pragma once

#include <array>
#include <boost/json/fwd.hpp>
#include <cmath>
#include <functional>
#include <memory>
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

class DurationModel {
 public:
  virtual ~DurationModel() = default;
  /// A launch took `duration` by itself on the whole device.
  virtual void learn(const LaunchShape& shape, Time duration) = 0;
  /// Empty before the first learn.
  virtual std::optional<Time> predict(const LaunchShape& shape) const = 0;
  virtual boost::json::value to_json() const = 0;
  /// Replaces what is known; on an error nothing changes.
  virtual Result<void> from_json(const boost::json::value& state) = 0;
};

using ModelFactory = std::function<std::unique_ptr<DurationModel>()>;

}  // namespace gpuctl::sched
