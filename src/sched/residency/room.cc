#include "sched/residency/room.h"

#include <algorithm>

namespace gpuctl::sched {

/// Without a capacity an amount is a number of workers on each SM.
SmUse Room::use(const Footprint& job, CapSM amount) const {
  if (capacity_ > CapSM{}) return use_of(*sm_, job, amount, capacity_);
  return job.blocks.empty() ? SmUse{} : use_of(*sm_, job.blocks.front(), amount.count);
}

bool Room::change(const Footprint& job, CapSM from, CapSM to) {
  const CapSM taken = taken_ - from + to;
  const bool fits_whole = capacity_ > CapSM{} && taken <= capacity_;
  SmUse use = use_;
  if (sm_) {
    use -= this->use(job, from);
    use += this->use(job, to);
  }
  if (to > from && !fits_whole && !(sm_ && fits(*sm_, use))) return false;
  taken_ = taken;
  use_ = use;
  return true;
}

CapSM Room::grow(const Footprint& job, CapSM from, CapSM to) {
  if (!sm_) to = std::min(to, from + capacity_ - std::min(taken_, capacity_));
  while (to > from && !change(job, from, to)) to -= CapSM{1};
  return std::max(from, to);
}

void Room::take(const Footprint& job, CapSM amount) {
  taken_ += amount;
  if (sm_) use_ += use(job, amount);
}

}  // namespace gpuctl::sched
