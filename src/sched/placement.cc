#include "sched/placement.h"

#include <algorithm>

namespace gpuctl::sched {

void Placement::carry_over(std::span<const std::int32_t> nodes, std::span<const std::int32_t> clients) {
  const auto renumber = [this](std::vector<Part>& parts, std::span<const std::int32_t> was) {
    scratch_.assign(was.size(), {});
    for (std::size_t i = 0; i < was.size(); ++i)
      if (was[i] >= 0) scratch_[i] = parts[static_cast<std::size_t>(was[i])];
    parts.swap(scratch_);
  };
  renumber(rest_, nodes);
  renumber(own_, clients);
}

void Placement::place(std::span<const NodeInput> nodes, std::span<const ClientInput> clients,
                      const Decision& decision) {
  count(nodes, clients, decision);
  free_ = device_;
  for (std::size_t n = 0; n < rest_.size(); ++n) shrink(rest_[n], nodes_[n]);
  for (std::size_t c = 0; c < own_.size(); ++c) shrink(own_[c], nodes_[clients[c].node]);

  // Within each node, then from what is free anywhere.
  for (const bool within : {true, false}) {
    for (std::size_t c = 0; c < own_.size(); ++c) {
      Node& node = nodes_[clients[c].node];
      grow(own_[c], node, within ? node.freed : free_);
    }
    for (std::size_t n = 0; n < rest_.size(); ++n) grow(rest_[n], nodes_[n], within ? nodes_[n].freed : free_);
  }
}

/// How large each part is to be.
void Placement::count(std::span<const NodeInput> nodes, std::span<const ClientInput> clients,
                      const Decision& decision) {
  nodes_.assign(nodes.size(), {});
  rest_.resize(nodes.size());
  own_.resize(clients.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const bool root = nodes[n].parent < 0;  // its reserve is the device
    nodes_[n].reserved = !root && nodes[n].reserve > CapSM{};
    if (!root) nodes_[static_cast<std::size_t>(nodes[n].parent)].leaf = false;
  }
  for (std::size_t n = 0; n < nodes.size(); ++n)
    rest_[n].count = nodes_[n].leaf ? (decision.nodes[n].given + decision.nodes[n].headroom).count : 0;
  for (std::size_t c = 0; c < clients.size(); ++c) {
    own_[c].count = decision.clients[c].own.count;
    std::uint32_t& rest = rest_[clients[c].node].count;
    rest -= std::min(rest, own_[c].count);
  }
}

void Placement::shrink(Part& part, Node& node) {
  const std::uint32_t size = part.sms.size();
  if (size > part.count) {
    const SmSet kept = node.reserved ? part.sms.highest(part.count) : part.sms.lowest(part.count);
    node.freed |= part.sms - kept;
    part.sms = kept;
  }
  free_ -= part.sms;
}

void Placement::grow(Part& part, Node& node, const SmSet& source) {
  const std::uint32_t size = part.sms.size();
  if (size >= part.count) return;
  const SmSet taken = node.reserved ? source.highest(part.count - size) : source.lowest(part.count - size);
  part.sms |= taken;
  node.freed -= taken;
  free_ -= taken;
}

}  // namespace gpuctl::sched
