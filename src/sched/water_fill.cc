#include "sched/water_fill.h"

#include <algorithm>

namespace gpuctl::sched {

void WaterFiller::fill(std::span<const Vessel> vessels, CapSM amount, std::uint64_t turn, std::span<CapSM> poured) {
  if (amount.count == 0) {
    std::fill(poured.begin(), poured.end(), CapSM{});
    return;
  }
  // Sum only until it is known that there is not enough for all.
  std::uint64_t room = 0;
  for (std::size_t i = 0; i < vessels.size() && room <= amount.count; ++i) room += vessels[i].room.count;
  if (room <= amount.count) {
    for (std::size_t i = 0; i < vessels.size(); ++i) poured[i] = vessels[i].room;
    return;
  }

  // One each, as far as it goes: division in proportion would starve the light ones for good.
  const std::size_t count = vessels.size(), first = turn % count;
  std::fill(poured.begin(), poured.end(), CapSM{});
  std::uint64_t left = amount.count;
  for (std::size_t n = 0, i = first; n < count && left > 0; ++n, i = i + 1 < count ? i + 1 : 0) {
    if (vessels[i].room.count == 0) continue;
    poured[i] = CapSM{1};
    --left;
  }
  if (left == 0) return;

  left = amount.count;
  open_.clear();
  std::uint64_t weights = 0;
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t i = first + n < count ? first + n : first + n - count;
    poured[i] = {};
    if (vessels[i].room.count == 0) continue;
    weights += vessels[i].weight;
    open_.push_back({static_cast<std::uint32_t>(i), vessels[i].weight, n, vessels[i].room.count});
  }
  // Fill the vessels whose share is at least their room. Each of them raises the level for the rest, so the order does
  // not matter and a few passes are enough.
  for (std::size_t before = 0; before != open_.size();) {
    before = open_.size();
    std::size_t kept = 0;
    for (const Open& vessel : open_) {
      if (vessel.room * weights <= left * vessel.weight) {
        poured[vessel.index] = CapSM{vessel.room};
        left -= vessel.room;
        weights -= vessel.weight;
      } else {
        open_[kept++] = vessel;
      }
    }
    open_.resize(kept);
  }

  // The others share in proportion. Each has room for the rounding: room > left * weight / weights.
  std::uint64_t handed_out = 0;
  for (Open& vessel : open_) {
    const std::uint64_t exact = left * vessel.weight;
    poured[vessel.index] = CapSM{static_cast<std::uint32_t>(exact / weights)};
    handed_out += exact / weights;
    vessel.room = static_cast<std::uint32_t>(exact % weights);  // holds the remainder from here on
  }
  const auto more = static_cast<std::ptrdiff_t>(left - handed_out);
  std::nth_element(open_.begin(), open_.begin() + more, open_.end(),
                   [](const Open& a, const Open& b) { return a.room != b.room ? a.room > b.room : a.key < b.key; });
  for (std::ptrdiff_t n = 0; n < more; ++n) poured[open_[static_cast<std::size_t>(n)].index] += CapSM{1};
  lift_empty(vessels, poured);
}

/// For each vessel that proportion left empty, takes one from the vessel with most for its weight, of those that have
/// two.
void WaterFiller::lift_empty(std::span<const Vessel> vessels, std::span<CapSM> poured) {
  for (std::size_t i = 0; i < vessels.size(); ++i) {
    if (vessels[i].room.count == 0 || poured[i].count != 0) continue;
    std::size_t donor = vessels.size();
    for (std::size_t j = 0; j < vessels.size(); ++j) {
      if (poured[j].count < 2) continue;
      if (donor == vessels.size() || std::uint64_t{poured[j].count} * vessels[donor].weight >
                                         std::uint64_t{poured[donor].count} * vessels[j].weight)
        donor = j;
    }
    if (donor == vessels.size()) return;
    poured[donor] -= CapSM{1};
    poured[i] = CapSM{1};
  }
}

}  // namespace gpuctl::sched
