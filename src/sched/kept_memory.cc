#include "sched/kept_memory.h"

#include <algorithm>
#include <vector>

namespace gpuctl::sched {

namespace {

std::uint64_t less(std::uint64_t from, std::uint64_t what) {
  return from - std::min(from, what);
}

/// What is kept for each, as far as the slices above have it.
std::vector<std::uint64_t> that_fits(std::span<const KeptMemory> nodes, std::uint64_t memory) {
  std::vector<std::uint64_t> kept(nodes.size()), of_children(nodes.size());
  for (std::size_t n = 1; n < nodes.size(); ++n)
    of_children[static_cast<std::size_t>(nodes[n].parent)] += nodes[n].kept;
  kept[0] = memory;
  for (std::size_t n = 1; n < nodes.size(); ++n) {
    const auto above = static_cast<std::size_t>(nodes[n].parent);
    kept[n] = nodes[n].kept;
    if (of_children[above] <= kept[above]) continue;
    const double part = static_cast<double>(kept[above]) / static_cast<double>(of_children[above]);
    kept[n] = std::min(kept[n], static_cast<std::uint64_t>(part * static_cast<double>(nodes[n].kept)));
  }
  return kept;
}

}  // namespace

MemoryLeft memory_beside(std::span<const KeptMemory> nodes, std::size_t slice, std::uint64_t memory) {
  const std::vector<std::uint64_t> kept = that_fits(nodes, memory);
  std::vector<std::uint64_t> held(nodes.size()), needs(nodes.size());  // in it and below it; with what is kept there
  for (std::size_t n = 0; n < nodes.size(); ++n) held[n] = needs[n] = nodes[n].held;
  const auto claims = [&](std::size_t n) { return std::max(needs[n], kept[n]); };
  MemoryLeft left;
  std::vector<std::size_t> path;  // from below the root to the slice
  for (std::size_t n = slice; n != 0; n = static_cast<std::size_t>(nodes[n].parent)) path.insert(path.begin(), n);
  std::uint64_t most_unused = 0;
  for (std::size_t n = nodes.size() - 1; n > 0; --n) {
    const auto above = static_cast<std::size_t>(nodes[n].parent);
    needs[above] += claims(n);
    held[above] += held[n];
    const bool is_own = std::ranges::find(path, n) != path.end();
    if (!is_own && less(kept[n], held[n]) > most_unused) most_unused = less(kept[n], held[n]), left.kept_for = n;
  }
  std::uint64_t has = memory;
  for (std::size_t above = 0; const std::size_t n : path) {
    has = std::max(less(has, needs[above] - claims(n)), kept[n]);
    above = n;
  }
  left.bytes = less(has, needs[slice]);
  return left;
}

}  // namespace gpuctl::sched
