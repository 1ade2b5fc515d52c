// Which of the hardware's few priority levels the clients of each slice have. The levels of a slice are divided among
// its children and its own clients, by priority; so whatever is set below a slice, the levels of all others stay as
// they are. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/allocator.h"

namespace gpuctl::sched {

/// Levels that programs may have: GPUs have six, and the greatest is the library's own.
inline constexpr std::uint32_t kLevels = 5;

/// From `first` on, `count` of them; 0 is the least.
struct LevelRange {
  std::uint32_t first = 0, count = kLevels;
  std::uint32_t end() const { return first + count; }
  bool operator==(const LevelRange&) const = default;
};

/// A client, and the priority that it asked for, within what its slice allows.
struct LevelClient {
  std::uint32_t node = 0;
  std::int32_t priority = 0;
};

/// One entry for each of `clients`. Every slice counts, with or without clients: levels change when an administrator
/// changes the tree, not whenever a program starts or ends. Among equals a slice with a reserve comes first: SMs kept
/// for it are of little use to it while blocks of others wait before its own. Where a slice's levels are too few for
/// those below it, neighbours in the order of their priorities share one.
std::vector<LevelRange> levels_of(std::span<const NodeInput> nodes, std::span<const LevelClient> clients);

}  // namespace gpuctl::sched
