// Starvation protection for policies under which jobs can starve. A job that has waited for `protect` in one go runs
// next, for one slice; the job that has waited longest comes first. This guarantees slice / (protect + slice) of the
// device to one starving job. When more jobs starve than slices fit into that time, they take turns and priorities no
// longer count.
#pragma once

#include "sched/temporal/makers.h"

namespace gpuctl::sched {

/// The least quantum of FRS: long beside an eviction, short beside what people notice.
inline constexpr Time kProtectedSlice = std::chrono::milliseconds{1};

/// `policy` itself when `protect` is 0.
std::unique_ptr<JobPolicy> protect_from_starving(std::unique_ptr<JobPolicy> policy, Time protect);

/// The option that every such policy has.
inline Time read_protect(OptionReader& options) {
  return options.milliseconds("protect_ms", 0, 0, 1e6);
}

}  // namespace gpuctl::sched
