// What part of the whole each client is due by weights alone: at each slice the weights of its inhabited children, and
// of its own clients together as one child of default weight, share the slice's part. So a slice's part depends on its
// own weight and its siblings', not on how many slices and clients are in it or on their weights. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/allocator.h"

namespace gpuctl::sched {

/// Holds scratch space, so that it allocates nothing once it has seen the largest tree. Not thread-safe.
class WeightParts {
 public:
  /// `own`: how many clients are directly in each node. The part of one client of each node, 0 where there is none;
  /// those of all clients add up to 1. Valid until the next call.
  std::span<const double> compute(std::span<const NodeInput> nodes, std::span<const std::uint32_t> own);

 private:
  std::vector<bool> inhabited_;
  std::vector<double> weights_;  ///< sum over what is directly below a node
  std::vector<double> whole_, each_;
};

}  // namespace gpuctl::sched
