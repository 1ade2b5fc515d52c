#include "sched/shares/water_fill.h"

#include <algorithm>

namespace gpuctl::sched {

namespace {

/// Whether all claimants can have their demand.
bool enough(std::span<const Claimant> claimants, Due amount) {
  Due left = amount;
  for (const Claimant& claimant : claimants)
    if ((left -= due_of(claimant.demand)) < 0) return false;  // no more is summed than is there
  return true;
}

}  // namespace

void WaterFiller::share(std::span<const Claimant> claimants, Due amount, std::span<Due> dues) {
  if (enough(claimants, amount)) {
    for (std::size_t i = 0; i < claimants.size(); ++i) dues[i] = due_of(claimants[i].demand);
    return;
  }
  open_.clear();
  Due weights = 0, left = amount;
  for (std::size_t i = 0; i < claimants.size(); ++i) {
    dues[i] = 0;
    if (claimants[i].demand.count == 0) continue;
    weights += claimants[i].weight;
    open_.push_back({static_cast<std::uint32_t>(i), claimants[i].weight, due_of(claimants[i].demand)});
  }
  Due part_of_weight = 0;
  std::uint32_t weight = 0;  // neighbours often have the same, and a division takes long
  const auto part_of = [&](const Open& claimant) {
    if (claimant.weight != weight) part_of_weight = left * (weight = claimant.weight) / weights;
    return part_of_weight;
  };
  const Due least = amount >= static_cast<Due>(open_.size()) * kWholeSm ? kWholeSm : 0;
  // Whoever cannot have what its weight says has the bound that is in its way, and the others share what is left. Where
  // both bounds are in somebody's way, only those stay for good that move the others' shares further.
  for (;;) {
    Due beyond = 0;  // what is too little for some, less what is too much for others
    bool any = false;
    for (const Open& claimant : open_) {
      const Due part = part_of(claimant);
      const Due bounded = std::clamp(part, least, claimant.key);
      any |= bounded != part;
      beyond += bounded - part;
    }
    if (!any) break;
    std::size_t kept = 0;
    Due weights_kept = weights, left_kept = left;
    for (const Open& claimant : open_) {
      const Due part = part_of(claimant);
      const bool raised = beyond >= 0 && part < least, lowered = beyond <= 0 && part > claimant.key;
      if (!raised && !lowered) {
        open_[kept++] = claimant;
        continue;
      }
      dues[claimant.index] = raised ? least : claimant.key;
      left_kept -= dues[claimant.index];
      weights_kept -= claimant.weight;
    }
    open_.resize(kept);
    weights = weights_kept, left = left_kept, weight = 0;
    if (open_.empty()) return;
  }
  for (const Open& claimant : open_) dues[claimant.index] = part_of(claimant);
}

void WaterFiller::round(std::span<const Claimant> claimants, std::span<const Due> dues, std::span<const Due> credits,
                        CapSM amount, std::span<CapSM> parts) {
  open_.clear();
  std::uint64_t handed_out = 0;
  for (std::size_t i = 0; i < claimants.size(); ++i) {
    const auto whole = static_cast<std::uint32_t>(dues[i] / kWholeSm);
    parts[i] = CapSM{whole};
    handed_out += whole;
    if (parts[i] >= claimants[i].demand) continue;
    const Due remainder = dues[i] % kWholeSm;
    // Shares are rounded down, so an SM may be left of which nobody seems to be due a part.
    const Due key = remainder == 0 ? INT64_MIN : remainder + (credits.empty() ? 0 : credits[i]);
    open_.push_back({static_cast<std::uint32_t>(i), 0, key});
  }
  const std::uint64_t left = amount.count > handed_out ? amount.count - handed_out : 0;
  const auto more = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(left, open_.size()));
  std::nth_element(open_.begin(), open_.begin() + more, open_.end(),
                   [](const Open& a, const Open& b) { return a.key != b.key ? a.key > b.key : a.index < b.index; });
  for (std::ptrdiff_t n = 0; n < more; ++n) parts[open_[static_cast<std::size_t>(n)].index] += CapSM{1};
}

void WaterFiller::fill(std::span<const Claimant> claimants, CapSM amount, std::span<CapSM> parts) {
  if (amount.count == 0) {
    std::fill(parts.begin(), parts.end(), CapSM{});
    return;
  }
  if (dues_.size() < claimants.size()) dues_.resize(claimants.size());
  const std::span<Due> dues{dues_.data(), claimants.size()};
  share(claimants, due_of(amount), dues);
  round(claimants, dues, {}, amount, parts);
}

}  // namespace gpuctl::sched
