#include "libgpuslice/agent/nap_planner.h"

#include <algorithm>

namespace gpuslice {

std::uint64_t NapPlanner::nap_ns(std::uint64_t launch, std::uint64_t left_ns, std::uint64_t now_ns, bool watches_ends) {
  if (launch != launch_) due_ns_ = 0;
  launch_ = launch;
  if (left_ns > 2 * kShortestNapNs) {
    due_ns_ = 0;
    if (!watches_ends) return left_ns / 2;
    return left_ns <= kWatchNs + kShortestNapNs ? 0 : std::min(left_ns / 2, left_ns - kWatchNs);
  }
  if (due_ns_ == 0) due_ns_ = now_ns;
  if (watches_ends && now_ns - due_ns_ < kWatchNs) return 0;
  return std::max((now_ns - due_ns_) / 8, kShortestNapNs);
}

}  // namespace gpuslice
