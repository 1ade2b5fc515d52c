// How workers claim a launch's block-tasks: how many per claim, and in which order (persistent_abi.h).
#pragma once

#include <array>
#include <cstdint>

#include "ptx/persistent_abi.h"

namespace gpuslice {

struct Chunks {
  std::uint32_t most = 1;       ///< most block-tasks per claim
  std::uint32_t least = 1;      ///< fewest block-tasks per claim, reached towards the end of the launch
  std::uint32_t taper = 0;      ///< LaunchArgs::taper
  std::uint32_t total = 0;      ///< LaunchArgs::total
  std::uint32_t step_bits = 0;  ///< `step` of task_order(), in bits
  std::uint32_t run_bits = 0;
  bool eager = false;  ///< whether claims are eager (kEager)
};

/// Plans the chunks of a launch. `grid` has 1 to kMaxBlockTasks block-tasks. Each takes `task_ns`; 0 means that this is
/// not known yet, and then workers claim one block-task at a time, in order. `workers` is how many workers the GPU
/// holds. `target_ns` is how long a worker may take to leave. `fixed`, if not 0, is the number of block-tasks of each
/// chunk, however long they take; in a grid of two dimensions it is rounded down to a power of two.
Chunks plan_chunks(const std::array<std::uint32_t, 3>& grid, double task_ns, std::uint64_t workers, double target_ns,
                   std::uint32_t fixed = 0);

/// GPUSLICE_CHUNK, for measurements: the `fixed` of all launches of this process; 0: chunks are sized by time.
std::uint32_t fixed_chunk();

/// The LaunchArgs of a launch with these chunks, without its slot, its range of SMs and its workers (set_workers()).
gpuctl::ptx::LaunchArgs lay_out(const std::array<std::uint32_t, 3>& grid, const Chunks& chunks);

/// Sets how many workers the in-stream grid has. `first_given`: each of them gets its first chunk without a claim
/// (LaunchArgs::first).
void set_workers(gpuctl::ptx::LaunchArgs& args, std::uint32_t workers, bool first_given);

}  // namespace gpuslice
