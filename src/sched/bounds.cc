#include "sched/bounds.h"

#include <algorithm>

namespace gpuctl::sched {

namespace {

/// `a` less `b`, at least 0: a device may be smaller than what the tree reserves.
CapSM excess(CapSM a, CapSM b) {
  return a > b ? a - b : CapSM{};
}

}  // namespace

CapSM most_of(std::span<const NodeInput> nodes, std::size_t index, CapSM capacity) {
  CapSM least = capacity;
  each_up_to_root(nodes, index, [&](std::size_t n) { least = std::min(least, nodes[n].max); });
  return least;
}

std::vector<CapSM> guaranteed(std::span<const NodeInput> nodes, CapSM capacity) {
  const auto above = [&](std::size_t n) { return static_cast<std::size_t>(nodes[n].parent); };
  // What each node may keep free, and what the children of each node may keep free together.
  std::vector<CapSM> kept(nodes.size()), kept_below(nodes.size());
  for (std::size_t n = nodes.size(); n-- > 1;) {  // children come after their parents
    const CapSM own = nodes[n].may_keep_reserve() ? nodes[n].reserve : CapSM{};
    kept[n] = std::min({std::max(own, kept_below[n]), nodes[n].max, capacity});
    kept_below[above(n)] += kept[n];
  }
  std::vector<CapSM> within(nodes.size()), guaranteed(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const CapSM from_above = n == 0 ? capacity : excess(within[above(n)], kept_below[above(n)] - kept[n]);
    within[n] = std::min(from_above, nodes[n].max);
    guaranteed[n] = std::max(excess(within[n], kept_below[n]), CapSM{1});
  }
  return guaranteed;
}

}  // namespace gpuctl::sched
