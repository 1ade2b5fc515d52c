#include "sched/effective/kept_by_mps.h"

#include <algorithm>

#include "sched/bounds.h"

namespace gpuctl::sched {

namespace {

/// In which MPS divides a device.
constexpr std::uint32_t kPair = 2;

bool has_cap(const CappedClient& client, CapSM capacity) {
  return client.cap < capacity;
}

}  // namespace

std::vector<CapSM> most_ever(std::span<const NodeInput> nodes, CapSM capacity) {
  std::vector<NodeInput> strict_alone(nodes.begin(), nodes.end());
  for (NodeInput& node : strict_alone) node.hold = {};
  return guaranteed(strict_alone, capacity);
}

std::optional<std::uint32_t> hundredths_for(CapSM most, CapSM device) {
  if (most >= device || most.count < kPair) return std::nullopt;
  const std::uint32_t pairs = most.count - most.count % kPair;
  return kAllHundredths * (2 * pairs + 1) / (2 * device.count);
}

CapSM sms_of_hundredths(std::uint32_t hundredths, CapSM device) {
  const std::uint32_t part = device.count * std::min(hundredths, kAllHundredths) / kAllHundredths;
  return part == device.count ? device : CapSM{std::max(part - part % kPair, kPair)};
}

bool kept_to_fewer(CapSM cap, CapSM max) {
  return cap.count + kPair <= max.count;
}

KeptByMps::KeptByMps(std::span<const NodeInput> nodes, std::span<const CappedClient> clients, CapSM capacity) {
  if (std::ranges::none_of(clients, [&](const CappedClient& client) { return has_cap(client, capacity); })) return;
  std::vector<CapSM> below(nodes.size());  // the caps of the clients in each node and below it
  for (const CappedClient& client : clients) below[client.node] += std::min(client.cap, capacity);
  for (std::size_t n = nodes.size(); n-- > 1;) below[static_cast<std::size_t>(nodes[n].parent)] += below[n];
  kept_.resize(nodes.size());
  std::vector<bool> reserve_below(nodes.size());  // a reserve below the node is not kept
  for (std::size_t n = nodes.size(); n-- > 0;) {
    const CapSM others = below[0] - below[n];
    kept_[n].max = nodes[n].max < capacity && below[n] > CapSM{} && below[n] <= nodes[n].max;
    // The reserves of a node's children are parts of its own, so its own goes only with theirs.
    kept_[n].reserve = n > 0 && nodes[n].reserve > CapSM{} && others > CapSM{} && !reserve_below[n] &&
                       others + nodes[n].reserve <= capacity;
    any_ |= kept_[n].max || kept_[n].reserve;
    if (n > 0 && (reserve_below[n] || (nodes[n].reserve > CapSM{} && !kept_[n].reserve)))
      reserve_below[static_cast<std::size_t>(nodes[n].parent)] = true;
  }
}

void KeptByMps::lift(std::span<NodeInput> nodes) const {
  if (!any_) return;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (kept_[n].max) nodes[n].max = kUnlimitedCapSM;
    if (!kept_[n].reserve) continue;
    nodes[n].reserve = {};
    nodes[n].strict = false;
    nodes[n].hold = {};
  }
}

}  // namespace gpuctl::sched
