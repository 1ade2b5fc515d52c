#include "libgpuslice/agent/nap_planner.h"

#include <algorithm>

namespace gpuslice {

std::uint64_t NapPlanner::nap_ns(std::uint64_t launch, std::uint64_t left_ns, std::uint64_t now_ns) {
  if (launch != launch_) due_ns_ = 0;
  launch_ = launch;
  if (left_ns > 2 * kShortestNapNs) {
    due_ns_ = 0;
    return left_ns / 2;
  }
  if (due_ns_ == 0) due_ns_ = now_ns;
  return std::max((now_ns - due_ns_) / 8, kShortestNapNs);
}

}  // namespace gpuslice
