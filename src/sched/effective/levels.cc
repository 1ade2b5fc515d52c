#include "sched/effective/levels.h"

#include <algorithm>
#include <utility>

namespace gpuctl::sched {

namespace {

/// A priority, and whether there is a reserve.
using Rank = std::pair<std::int32_t, bool>;

/// The part of `whole` for `rank`, which is one of `ranks`: ascending, without duplicates.
LevelRange part_of(LevelRange whole, const std::vector<Rank>& ranks, Rank rank) {
  const auto count = static_cast<std::uint32_t>(ranks.size());
  const auto place = static_cast<std::uint32_t>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
  const std::uint32_t begin = place * whole.count / count, end = (place + 1) * whole.count / count;
  return {whole.first + begin, std::max(end, begin + 1) - begin};
}

void sort_out(std::vector<Rank>& ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());  // clang 14 has no std::ranges::unique()
}

}  // namespace

std::vector<LevelRange> levels_of(std::span<const NodeInput> nodes, std::span<const LevelClient> clients) {
  std::vector<bool> reserved(nodes.size(), false);
  std::vector<std::vector<Rank>> below(nodes.size()), within(nodes.size());
  const auto rank = [&](std::size_t n) { return Rank{nodes[n].priority, reserved[n]}; };
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].parent >= 0) {
      const auto above = static_cast<std::size_t>(nodes[n].parent);
      reserved[n] = nodes[n].reserve > CapSM{} || (above > 0 && reserved[above]);
      below[above].push_back(rank(n));
    }
    below[n].push_back(rank(n));  // its own clients
    within[n].push_back(rank(n));
  }
  for (const LevelClient& client : clients) within[client.node].emplace_back(client.priority, reserved[client.node]);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    sort_out(below[n]);
    sort_out(within[n]);
  }

  std::vector<LevelRange> all(nodes.size()), own(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].parent >= 0) {
      const auto above = static_cast<std::size_t>(nodes[n].parent);
      all[n] = part_of(all[above], below[above], rank(n));
    }
    own[n] = part_of(all[n], below[n], rank(n));
  }
  std::vector<LevelRange> found;
  found.reserve(clients.size());
  for (const LevelClient& client : clients)
    found.push_back(part_of(own[client.node], within[client.node], {client.priority, reserved[client.node]}));
  return found;
}

}  // namespace gpuctl::sched
