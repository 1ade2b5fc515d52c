#include "sched/residency/room.h"

#include <algorithm>

namespace gpuctl::sched {

bool Room::change(const BlockShape& block, CapSM from, CapSM to) {
  const CapSM taken = taken_ - from + to;
  SmUse use = use_;
  if (sm_) {
    use -= use_of(*sm_, block, from.count);
    use += use_of(*sm_, block, to.count);
  }
  if (to > from && !(sm_ ? fits(*sm_, use) : taken <= capacity_)) return false;
  taken_ = taken;
  use_ = use;
  return true;
}

CapSM Room::grow(const BlockShape& block, CapSM from, CapSM to) {
  if (!sm_) to = std::min(to, from + capacity_ - std::min(taken_, capacity_));
  while (to > from && !change(block, from, to)) to -= CapSM{1};
  return std::max(from, to);
}

}  // namespace gpuctl::sched
