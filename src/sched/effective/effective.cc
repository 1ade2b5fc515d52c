#include "sched/effective/effective.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "sched/effective/fit_reserves.h"

namespace gpuctl::sched {

namespace {

std::optional<std::uint64_t> lesser(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

/// Bounds when the reserve is kept free by what the slice above keeps.
void bound_mode(Effective& own, const Effective& above) {
  if (above.reserve_mode == ReserveMode::strict) return;
  own.kept_with_parent = own.reserve_mode == ReserveMode::strict;
  own.reserve_hold = own.kept_with_parent ? above.reserve_hold : std::min(own.reserve_hold, above.reserve_hold);
  own.reserve_mode = above.reserve_mode;
}

}  // namespace

std::vector<Effective> effective_settings(const Slices& slices) {
  std::vector<Effective> all;
  std::vector<std::pair<std::string_view, std::int32_t>> above_it;  // the last slice and those above it
  all.reserve(slices.size());
  for (const auto& [path, slice] : slices) {  // parents first, and what is below a slice right behind it
    const auto mine = static_cast<std::int32_t>(all.size());
    while (mine > 0 && above_it.back().first != parent_path(path)) above_it.pop_back();
    Effective own{.reserve = slice.reserve,
                  .reserve_mode = slice.reserve_mode,
                  .reserve_hold = slice.reserve_hold,
                  .max = slice.max,
                  .memory_min = slice.memory_min,
                  .memory_max = slice.memory_max,
                  .memory_high = slice.memory_high,
                  .priority = slice.priority,
                  .isolated = slice.isolated,
                  .frozen = slice.frozen,
                  .swapped = slice.swapped,
                  .seen = slice.seen,
                  .turn_priority = slice.priority};
    if (path != "/") {
      own.parent = above_it.back().second;
      const Effective& above = all[static_cast<std::size_t>(own.parent)];
      own.ruler = above.ruler;
      own.isolated |= above.isolated;
      own.frozen |= above.frozen;
      own.swapped |= above.swapped;
      own.reserve = above.ruler >= 0 || own.isolated || own.frozen ? CapSM{} : std::min(own.reserve, above.reserve);
      own.max = std::min(own.max, above.max);
      own.memory_max = lesser(own.memory_max, above.memory_max);
      own.memory_high = lesser(own.memory_high, above.memory_high);
      own.memory_min = std::min(own.memory_min, own.memory_max.value_or(own.memory_min));
      bound_mode(own, above);
      if (own.parent > 0) own.memory_min = std::min(own.memory_min, above.memory_min);
      if (own.parent > 0) own.priority = std::min(own.priority, above.priority);
      if (own.ruler >= 0 && own.parent != own.ruler)
        own.turn_priority = std::min(own.turn_priority, above.turn_priority);
    }
    if (own.frozen) own.max = CapSM{};
    if (own.ruler < 0 && !slice.job_policy.empty()) own.ruler = mine;
    above_it.emplace_back(path, mine);
    all.push_back(own);
  }
  return all;
}

std::string topmost_isolated(const Slices& slices, std::string_view path) {
  std::string found;
  for (;; path = parent_path(path)) {
    const auto slice = slices.find(std::string(path));
    if (slice != slices.end() && slice->second.isolated) found = path;
    if (path == "/") return found;
  }
}

std::vector<NodeInput> nodes_within(const Slices& slices, std::span<const NodeInput> nodes, std::size_t top,
                                    CapSM device) {
  const std::string top_path = std::next(slices.begin(), static_cast<std::ptrdiff_t>(top))->first;
  Slices others = slices;  // as they would be if that slice were the root
  for (auto& [path, slice] : others) {
    slice.isolated = false;
    if (in_or_below(top_path, path))
      slice.reserve = device, slice.reserve_mode = ReserveMode::strict;
    else if (!in_or_below(path, top_path))
      slice.reserve = CapSM{};
  }
  std::vector<NodeInput> within(nodes.begin(), nodes.end());
  for (std::size_t n = 0; const Effective& own : effective_settings(others)) {
    NodeInput& node = within[n++];
    const bool lapses = own.reserve_mode == ReserveMode::active && own.reserve > CapSM{};
    node.reserve = own.reserve;
    node.strict = own.reserve_mode == ReserveMode::strict;
    node.hold = lapses ? std::chrono::nanoseconds(own.reserve_hold) : std::chrono::nanoseconds{};
    node.kept_with_parent = lapses && own.kept_with_parent;
  }
  fit_reserves(within, device);
  return within;
}

}  // namespace gpuctl::sched
