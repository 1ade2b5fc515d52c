// The contract between a kernel in sliced form and the runtime that launches it.
//
// A kernel in sliced form runs as a series of launches: its subgrids. Each is a one-dimensional grid that runs as many
// consecutive block-tasks as it has blocks, in the order of the grid. All subgrids together run each block-task once.
// Another program's kernels may run between two of them. FLEP calls this kernel slicing (section 2, Figure 17),
// EffiSha calls it PKM (sections 3 and 8.3, Figure 11).
//
// The subgrids of one launch must run one after the other, or at the same time: block-tasks wait for no other one
// (pass/refuse_waiting_blocks.h). Nothing that the program put behind the launch may run before the last has ended, and
// nothing of the program that the launch is ordered with may run between two of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ptx/persistent_abi.h"

namespace gpuctl::ptx {

/// Passed by value as the last parameter of a sliced entry, appended after the program's own parameters.
struct SubgridArgs {
  std::uint32_t first;   ///< number of the subgrid's first block-task in the order of the grid
  std::uint32_t grid_x;  ///< the program's grid, of at most kMaxBlockTasks blocks
  std::uint32_t grid_y;
  std::uint32_t grid_z;
  Divisor by_grid_x;
  Divisor by_grid_y;
};
static_assert(sizeof(SubgridArgs) == 32 && offsetof(SubgridArgs, by_grid_x) == 16);
static_assert(sizeof(SubgridArgs) <= sizeof(LaunchArgs) && alignof(LaunchArgs) % alignof(SubgridArgs) == 0);

/// Appended to the name of an entry to name its sliced form.
inline constexpr char kSlicedSuffix[] = "__gpuslice_sliced";

}  // namespace gpuctl::ptx
