#include "sched/kept_memory.h"

#include <algorithm>

#include "base/limit_text.h"

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

std::vector<std::uint64_t> kept_on(std::span<const Effective> effective, std::uint64_t memory) {
  std::vector<KeptMemory> nodes;
  for (const Effective& own : effective) nodes.push_back({.parent = own.parent, .kept = own.memory_min});
  std::vector<std::uint64_t> kept = that_fits(nodes, memory);
  kept.front() = 0;  // nothing is kept for the root: it has all
  return kept;
}

std::vector<std::pair<std::string, std::string>> unfit_memory(const Slices& slices,
                                                              std::span<const Effective> effective,
                                                              std::uint64_t memory, const std::string& name) {
  const auto size = [](std::uint64_t bytes) { return size_text(static_cast<std::int64_t>(bytes)); };
  const std::vector<std::uint64_t> kept = kept_on(effective, memory);
  std::vector<std::pair<std::string, std::string>> lines;
  for (std::size_t n = 0; const auto& [path, slice] : slices) {
    const std::size_t own = n++;
    if (own == 0 || kept[own] >= std::min(slice.memory_min, effective[own].memory_max.value_or(slice.memory_min)))
      continue;
    const auto above = static_cast<std::size_t>(effective[own].parent);
    const std::string where =
        above == 0 ? name + ", which has " + size(memory)
                   : "slice " + std::string(parent_path(path)) + ", which has " + size(kept[above]) + " of " + name;
    lines.emplace_back(path, "the memory_min of slice " + path + ", " + size(slice.memory_min) + ", does not fit " +
                                 where + ": it is " + size(kept[own]) + " there");
  }
  return lines;
}

}  // namespace gpuctl::sched
