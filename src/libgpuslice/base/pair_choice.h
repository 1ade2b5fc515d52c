// Whether a program's launches are confined to parts made of pairs of SMs, or of groups (sm_groups.h).
//
// Pairs use nearly all SMs of a part, but clusters of more than two blocks do not run there. A program that has such
// clusters once has groups from then on: each change from one kind to the other has its streams wait for each other.
// What the driver refuses in pairs for another reason may be a matter of that moment (refusal.h).
// docs/design/opaque.md, "Pairs, where programs have SMs in common".
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "libgpuslice/base/refusal.h"
#include "libgpuslice/base/sm_groups.h"

namespace gpuslice {

/// Any thread.
class PairChoice {
 public:
  /// Whether a launch goes by pairs. `common`: GrantView::Part::common. `cluster`: blocks of its clusters.
  bool pairs_for(bool common, std::uint64_t cluster) {
    if (cluster > kPairSms) groups_.store(true, std::memory_order_relaxed);
    return common && !groups_.load(std::memory_order_relaxed) && !refusal_.stands();
  }
  /// The driver refused in pairs what it did elsewhere. For a while no launch goes by pairs.
  void refused() {
    const std::lock_guard lock(mutex_);
    if (!refusal_.stands()) refusal_.note(Refusal::Clock::now());  // else it is of the same moment
  }

 private:
  std::atomic<bool> groups_{false};
  Refusal refusal_;
  std::mutex mutex_;  ///< held while refusal_ changes
};

}  // namespace gpuslice
