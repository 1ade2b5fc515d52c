#include "sched/residency/footprint.h"

#include <algorithm>

namespace gpuctl::sched {

namespace {

std::uint64_t rounded_up(std::uint64_t amount, CapSM part, CapSM whole) {
  return (amount * part.count + whole.count - 1) / whole.count;
}

SmUse part_of_all(const SmLimits& sm, CapSM part, CapSM sms) {
  return {.warps = rounded_up(sm.warps, part, sms),
          .blocks = rounded_up(sm.blocks, part, sms),
          .registers = rounded_up(sm.registers / kSmPartitions, part, sms),
          .shared = rounded_up(sm.shared, part, sms),
          .barriers = rounded_up(sm.barriers, part, sms)};
}

void raise(SmUse& use, const SmUse& other) {
  use.warps = std::max(use.warps, other.warps), use.blocks = std::max(use.blocks, other.blocks);
  use.registers = std::max(use.registers, other.registers), use.shared = std::max(use.shared, other.shared);
  use.barriers = std::max(use.barriers, other.barriers);
}

/// Workers on an SM that has fewest.
std::uint32_t least_workers(const SmLimits& sm, const BlockShape& block, CapSM granted, CapSM sms) {
  return static_cast<std::uint32_t>(std::uint64_t{most_blocks(sm, block)} * granted.count / sms.count);
}

}  // namespace

SmUse least_use_of(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms) {
  SmUse use = part_of_all(sm, job.blocks.empty() ? granted : std::min(granted, job.kept), sms);
  for (const BlockShape& block : job.blocks) raise(use, use_of(sm, block, least_workers(sm, block, granted, sms)));
  return use;
}

bool finds_room(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms, const SmUse& beside) {
  return std::ranges::all_of(job.blocks, [&](const BlockShape& block) {
    SmUse together = use_of(sm, block, 1);
    return least_workers(sm, block, granted, sms) > 0 || fits(sm, together += beside);
  });
}

CapSM one_worker_less(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms) {
  CapSM less{};
  for (const BlockShape& block : job.blocks) {
    const std::uint32_t workers = least_workers(sm, block, granted, sms);
    if (workers < 2) return granted;
    const std::uint32_t most = most_blocks(sm, block);
    less = std::max(less, CapSM{((workers - 1) * sms.count + most - 1) / most});
  }
  return job.blocks.empty() ? granted : std::min(less, granted);
}

SmUse use_of(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms) {
  SmUse use = part_of_all(sm, job.blocks.empty() ? granted : std::min(granted, job.kept), sms);
  for (const BlockShape& block : job.blocks)
    raise(use, use_of(sm, block, static_cast<std::uint32_t>(rounded_up(most_blocks(sm, block), granted, sms))));
  return use;
}

CapSM next_amount(const SmLimits& sm, const Footprint& job, CapSM granted, CapSM sms) {
  std::uint32_t next = job.blocks.empty() ? granted.count + 1 : sms.count;
  for (const BlockShape& block : job.blocks) {
    const std::uint64_t most = std::max(most_blocks(sm, block), 1u);
    std::uint64_t workers = rounded_up(most, granted, sms);
    if (workers * sms.count / most <= granted.count) ++workers;
    next = static_cast<std::uint32_t>(std::min<std::uint64_t>(next, workers * sms.count / most));
  }
  return CapSM{std::min(std::max(next, granted.count + 1), sms.count)};
}

}  // namespace gpuctl::sched
