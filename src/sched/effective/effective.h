// What is in force for each slice: its settings, bounded by those of every slice above it. Whoever decides something
// takes these values, in every policy and mode. So the owner of a subtree changes nothing beyond the subtree's own
// bounds, whatever the owner sets below. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sched/allocator.h"
#include "sched/slices.h"

namespace gpuctl::sched {

struct Effective {
  std::int32_t parent = -1;  ///< index; -1 for the root
  /// No more than that of the slice above. 0 below a slice with a policy for jobs, because time is divided there. 0 of
  /// an isolated slice, whose programs are never on the GPU together with others.
  CapSM reserve{};
  /// `strict` only if it is so on the whole path: a slice keeps nothing free that the slice above lends.
  ReserveMode reserve_mode = ReserveMode::active;
  /// With mode `active`: no longer than that of an `active` slice above.
  std::chrono::milliseconds reserve_hold{};
  CapSM max = kUnlimitedCapSM;  ///< the least on the path; 0 while it is frozen
  /// Bytes: the least on the path, without the root, which has none, and no more than it may have.
  std::uint64_t memory_min = 0;
  std::optional<std::uint64_t> memory_max;   ///< bytes: the least on the path
  std::optional<std::uint64_t> memory_high;  ///< the same
  /// The least on the path, without the root, which has none. Everybody's priorities are compared by it.
  std::int32_t priority = 0;
  /// Programs that start now share no context of the GPU with others: the slice is isolated, or one above it.
  bool isolated = false;
  /// The slice is frozen, or one above it: it has neither a reserve nor a max of more than 0.
  bool frozen = false;
  bool swapped = false;  ///< the memory of its programs is to be on the host
  /// Of a tree on one GPU: programs that start now see it. Of a tree of all GPUs: they see any.
  bool seen = true;
  /// The topmost slice on the path, this one included, that has a policy for jobs: an index; -1: none.
  std::int32_t ruler = -1;
  /// Under a policy for jobs: the least on the path below the ruling slice. Only jobs below that slice are compared by
  /// it, so the ruling slice's own priority is no bound.
  std::int32_t turn_priority = 0;
  /// The reserve is kept while that of the slice above is, not by the slice's own activity: it is `strict` by itself.
  bool kept_with_parent = false;
};

/// One entry for each slice, in the order of `slices`.
std::vector<Effective> effective_settings(const Slices& slices);

/// The path of the topmost isolated slice of those in which `path` is; "": there is none.
std::string topmost_isolated(const Slices& slices, std::string_view path);

/// `nodes`, the tree as everybody has it, as it is for programs that share a context with those of one isolated slice
/// alone, `top`: nobody else is on the GPU with them, so of all reserves those below that slice count, in the `device`.
std::vector<NodeInput> nodes_within(const Slices& slices, std::span<const NodeInput> nodes, std::size_t top,
                                    CapSM device);

}  // namespace gpuctl::sched
