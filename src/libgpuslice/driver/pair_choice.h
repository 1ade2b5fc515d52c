// Whether a program's launches are confined to parts made of pairs of SMs, or of groups (sm_groups.h).
//
// Pairs use nearly all SMs of a part, but clusters of more than two blocks do not run there. A program that needs
// groups once has them from then on: each change from one kind to the other has its streams wait for each other.
// docs/design/opaque.md, "Pairs, where programs have SMs in common".
#pragma once

#include <atomic>
#include <cstdint>

#include "libgpuslice/driver/sm_groups.h"

namespace gpuslice {

/// Any thread.
class PairChoice {
 public:
  /// Whether a launch goes by pairs. `common`: GrantView::Part::common. `cluster`: blocks of its clusters.
  bool pairs_for(bool common, std::uint64_t cluster) {
    if (cluster > kPairSms) by_groups();
    return common && !groups_.load(std::memory_order_relaxed);
  }
  /// From now on no launch goes by pairs.
  void by_groups() { groups_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> groups_{false};
};

}  // namespace gpuslice
