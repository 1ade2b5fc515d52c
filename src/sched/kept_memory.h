// Memory of a GPU that is kept for slices, as memory.min of control groups is: what a slice has not used of it nobody
// else gets. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sched/effective/effective.h"
#include "sched/slices.h"

namespace gpuctl::sched {

/// A slice, parents first. The first one is the root.
struct KeptMemory {
  std::int32_t parent = -1;
  std::uint64_t kept = 0;  ///< bytes that are kept for it and all below it together; not looked at of the root
  std::uint64_t held = 0;  ///< bytes that programs directly in it hold
};

struct MemoryLeft {
  std::uint64_t bytes = 0;
  /// For which other slice more is kept than it and those below it hold, the most of all; none: for none.
  std::optional<std::size_t> kept_for;
};

/// What one more program directly in `slice` may hold of a GPU with so much memory: with that, what all hold and what
/// is kept beside that are no more than there is. What is kept for the program's own slices is its in any case. Where
/// the children of a slice have more kept than it has, as on a small GPU, each has its part of that.
MemoryLeft memory_beside(std::span<const KeptMemory> nodes, std::size_t slice, std::uint64_t memory);

/// What is kept for each slice on a GPU with so much memory, by that rule. `effective`: what is in force there, in the
/// order of the slices.
std::vector<std::uint64_t> kept_on(std::span<const Effective> effective, std::uint64_t memory);

/// Path, and a line for a person, of each slice for which less is kept there than is set, because that is more than the
/// GPU, or the slice above, has for all. `name`: what to call the GPU.
std::vector<std::pair<std::string, std::string>> unfit_memory(const Slices& slices,
                                                              std::span<const Effective> effective,
                                                              std::uint64_t memory, const std::string& name);

}  // namespace gpuctl::sched
