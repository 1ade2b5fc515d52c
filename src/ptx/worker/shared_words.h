// What a worker keeps in shared memory, behind or beside the program's own. All threads read `published`; the rest is
// the leader's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ptx/persistent_abi.h"

namespace gpuctl::ptx::pass {

struct SharedWords {
  std::uint32_t published[2];  ///< the run of block-tasks to take next, in alternate turns (index_mask())
  std::uint32_t part_begin;    ///< begin and end of what the leader has still to publish of its chunk
  std::uint32_t part_end;
  std::uint64_t leader_state;  ///< kNothingToNote, kEvicted, kResting, or a time
  std::uint32_t known;         ///< all numbers below this one are claimed, as far as the leader knows
  std::uint32_t looks;         ///< whether the leader looks before it claims: 0 no, 1 for now, 2 always
  std::uint32_t chunk_tasks;   ///< block-tasks in the leader's chunk
  std::uint32_t started_on;    ///< the SM on which the worker started
  std::uint32_t finished[2];   ///< how many warps have finished what was published, in alternate turns
  std::uint32_t quick_size;    ///< the size of the next claim if that may be a quick one, else 0
  std::uint32_t seen_range;    ///< the range in DeviceSlot, as the leader last saw it
  /// Whether the worker is counted in `gone`: 0 no; 1 yes, or the grid is an agent's; 2 yes, and it is the holder.
  std::uint32_t counted;
  std::uint32_t reserved;
};
static_assert(sizeof(SharedWords) == kSharedWordsBytes);

}  // namespace gpuctl::ptx::pass
