// How a launch's block-tasks are handed out: how many at once, and in which order (persistent_abi.h).
#pragma once

#include <array>
#include <cstdint>

#include "ptx/persistent_abi.h"

namespace gpuslice {

struct Chunks {
  std::uint32_t most = 1;       ///< block-tasks a claim
  std::uint32_t least = 1;      ///< towards the end
  std::uint32_t taper = 0;      ///< LaunchArgs::taper
  std::uint32_t total = 0;      ///< LaunchArgs::total
  std::uint32_t step_bits = 0;  ///< of task_order()
  std::uint32_t run_bits = 0;
  bool eager = false;  ///< kEager
};

/// `grid` has 1 to kMaxBlockTasks block-tasks of `task_ns` each, 0 if that is not known yet (then they are handed out
/// one at a time, in order), and `workers` fit on the GPU. `target_ns` is what a worker may take to leave.
Chunks plan_chunks(const std::array<std::uint32_t, 3>& grid, double task_ns, std::uint64_t workers, double target_ns);

/// The LaunchArgs of such a launch, but for its slot, who may run where, and who gets what: set_workers().
gpuctl::ptx::LaunchArgs lay_out(const std::array<std::uint32_t, 3>& grid, const Chunks& chunks);

/// Of its in-stream grid. `first_given`: each has its first chunk without a claim (LaunchArgs::first).
void set_workers(gpuctl::ptx::LaunchArgs& args, std::uint32_t workers, bool first_given);

}  // namespace gpuslice
