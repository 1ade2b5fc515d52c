#include "sched/water_fill.h"

#include <algorithm>

namespace gpuctl::sched {

void WaterFiller::fill(std::span<const Claimant> claimants, CapSM amount, std::uint64_t turn, std::span<CapSM> parts) {
  if (amount.count == 0) {
    std::fill(parts.begin(), parts.end(), CapSM{});
    return;
  }
  // Sum only until it is known that there is not enough for all.
  std::uint64_t demand = 0;
  for (std::size_t i = 0; i < claimants.size() && demand <= amount.count; ++i) demand += claimants[i].demand.count;
  if (demand <= amount.count) {
    for (std::size_t i = 0; i < claimants.size(); ++i) parts[i] = claimants[i].demand;
    return;
  }

  // One each, as far as it goes: division in proportion would starve the light ones for good.
  const std::size_t count = claimants.size(), first = turn % count;
  std::fill(parts.begin(), parts.end(), CapSM{});
  std::uint64_t left = amount.count;
  for (std::size_t n = 0, i = first; n < count && left > 0; ++n, i = i + 1 < count ? i + 1 : 0) {
    if (claimants[i].demand.count == 0) continue;
    parts[i] = CapSM{1};
    --left;
  }
  if (left == 0) return;

  left = amount.count;
  open_.clear();
  std::uint64_t weights = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t i = first + n < count ? first + n : first + n - count;
    parts[i] = {};
    if (claimants[i].demand.count == 0) continue;
    weights += claimants[i].weight;
    open_.push_back({static_cast<std::uint32_t>(i), claimants[i].weight, n, claimants[i].demand.count});
  }
  // Give those their demand whose share is at least that. Each of them raises the share of the rest, so the order does
  // not matter and a few passes are enough.
  for (std::size_t before = 0; before != open_.size();) {
    before = open_.size();
    std::size_t kept = 0;
    for (const Open& claimant : open_) {
      if (claimant.demand * weights <= left * claimant.weight) {
        parts[claimant.index] = CapSM{claimant.demand};
        left -= claimant.demand;
        weights -= claimant.weight;
      } else {
        open_[kept++] = claimant;
      }
    }
    open_.resize(kept);
  }

  // The others share in proportion. The rounding fits, because for each: demand > left * weight / weights.
  std::uint64_t handed_out = 0;
  for (Open& claimant : open_) {
    const std::uint64_t exact = left * claimant.weight;
    parts[claimant.index] = CapSM{static_cast<std::uint32_t>(exact / weights)};
    handed_out += exact / weights;
    claimant.demand = static_cast<std::uint32_t>(exact % weights);  // holds the remainder from here on
  }
  const auto more = static_cast<std::ptrdiff_t>(left - handed_out);
  std::nth_element(open_.begin(), open_.begin() + more, open_.end(), [](const Open& a, const Open& b) {
    return a.demand != b.demand ? a.demand > b.demand : a.key < b.key;
  });
  for (std::ptrdiff_t n = 0; n < more; ++n) parts[open_[static_cast<std::size_t>(n)].index] += CapSM{1};
  lift_empty(claimants, parts);
}

/// For each claimant that proportion left with none, takes one from the claimant with most for its weight, of those
/// that have two.
void WaterFiller::lift_empty(std::span<const Claimant> claimants, std::span<CapSM> parts) {
  for (std::size_t i = 0; i < claimants.size(); ++i) {
    if (claimants[i].demand.count == 0 || parts[i].count != 0) continue;
    std::size_t donor = claimants.size();
    for (std::size_t j = 0; j < claimants.size(); ++j) {
      if (parts[j].count < 2) continue;
      if (donor == claimants.size() || std::uint64_t{parts[j].count} * claimants[donor].weight >
                                           std::uint64_t{parts[donor].count} * claimants[j].weight)
        donor = j;
    }
    if (donor == claimants.size()) return;
    parts[donor] -= CapSM{1};
    parts[i] = CapSM{1};
  }
}

}  // namespace gpuctl::sched
