#include "sched/allocator.h"

#include <algorithm>

#include "sched/slice.h"

namespace gpuctl::sched {

namespace {
CapSM bounded_sum(CapSM a, CapSM b, CapSM bound) {
  return std::min(CapSM{a.count + b.count}, bound);
}
}  // namespace

void Allocator::decide(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity,
                       std::uint64_t turn, Decision& decision) {
  decision.nodes.assign(nodes.size(), {});
  decision.clients.assign(clients.size(), {});
  link(nodes, clients, capacity);
  gather(nodes, capacity, decision);
  decision.nodes[0].given = std::min(capacity, nodes[0].max);
  for (std::size_t i = 0; i < nodes.size(); ++i) divide(i, nodes, capacity, turn, decision);
}

/// Lists of children and of clients per node, in the order of the input.
void Allocator::link(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity) {
  nodes_.assign(nodes.size(), Node{-1, -1, -1, {}, {}, {}, false, false});
  next_client_.resize(clients.size());
  demand_.resize(clients.size());
  most_.resize(clients.size());
  for (std::size_t c = clients.size(); c-- > 0;) {
    Node& node = nodes_[clients[c].node];
    next_client_[c] = node.first_client;
    node.first_client = static_cast<std::int32_t>(c);
    most_[c] = clients[c].most;
    demand_[c] = std::min({clients[c].demand, clients[c].most, capacity});
    node.own_want = bounded_sum(node.own_want, demand_[c], kUnlimitedCapSM);
    node.open |= clients[c].most > CapSM{};
    node.inhabited |= node.open;
  }
  for (std::size_t i = nodes.size(); i-- > 1;) {
    Node& parent = nodes_[static_cast<std::size_t>(nodes[i].parent)];
    nodes_[i].next_sibling = parent.first_child;
    parent.first_child = static_cast<std::int32_t>(i);
    parent.inhabited |= nodes_[i].inhabited;
  }
}

/// Bottom up: what each node could use or must keep free (want), and what it is owed whatever others want (floor).
void Allocator::gather(std::span<const NodeInput> nodes, CapSM capacity, Decision& decision) {
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const NodeInput& input = nodes[i];
    Node& node = nodes_[i];
    const CapSM max = std::min(input.max, capacity), reserve = std::min(input.reserve, max);
    NodeDecision& result = decision.nodes[i];
    result.demand = bounded_sum(result.demand, node.own_want, max);
    node.want = bounded_sum(node.want, node.own_want, max);
    if (input.strict) node.want = std::max(node.want, reserve);
    node.floor = std::min(reserve, node.want);
    if (input.parent < 0) continue;
    Node& parent = nodes_[static_cast<std::size_t>(input.parent)];
    NodeDecision& parent_result = decision.nodes[static_cast<std::size_t>(input.parent)];
    parent.want = bounded_sum(parent.want, node.want, kUnlimitedCapSM);
    parent_result.demand = bounded_sum(parent_result.demand, result.demand, kUnlimitedCapSM);
  }
}

/// Top down: divides what the node was given by its policy, and what remains of it as headroom.
void Allocator::divide(std::size_t index, std::span<const NodeInput> nodes, CapSM capacity, std::uint64_t turn,
                       Decision& decision) {
  const Node& node = nodes_[index];
  const NodeDecision& mine = decision.nodes[index];
  if (node.first_child < 0) {
    divide_among_clients(index, mine.given, mine.headroom, true, turn, decision);
    return;
  }

  claims_.clear();
  const auto each_child = [&](auto&& visit) {
    for (std::int32_t c = node.first_child; c >= 0; c = nodes_[static_cast<std::size_t>(c)].next_sibling)
      visit(static_cast<std::size_t>(c));
  };
  each_child([&](std::size_t c) {
    claims_.push_back({nodes_[c].floor, nodes_[c].want, nodes[c].weight, nodes[c].priority});
  });
  claims_.push_back({CapSM{}, std::min(node.own_want, mine.given), kWeightDefault, 0});
  given_.resize(claims_.size());
  nodes[index].policy->divide(claims_, mine.given, turn, filler_, given_);

  CapSM pool = mine.given + mine.headroom;
  std::size_t n = 0;
  filler_.vessels.clear();
  each_child([&](std::size_t c) {
    decision.nodes[c].given = given_[n];
    pool -= given_[n];
    const CapSM room = nodes_[c].inhabited ? std::min(nodes[c].max, capacity) - given_[n] : CapSM{};
    filler_.vessels.push_back({room, nodes[c].weight});
    ++n;
  });
  const CapSM own = given_[n];
  pool -= own;
  filler_.vessels.push_back({node.open ? pool : CapSM{}, kWeightDefault});
  filler_.poured.resize(n + 1);
  filler_.fill(filler_.vessels, pool, 0, filler_.poured);
  const CapSM own_headroom = filler_.poured[n];
  n = 0;
  each_child([&](std::size_t c) { decision.nodes[c].headroom = filler_.poured[n++]; });
  divide_among_clients(index, own, own_headroom, false, turn, decision);
}

/// `leaf`: what of `capacity` nobody demands is a strict reserve at rest, and headroom for each of the clients.
void Allocator::divide_among_clients(std::size_t index, CapSM capacity, CapSM headroom, bool leaf, std::uint64_t turn,
                                     Decision& decision) {
  const std::int32_t first = nodes_[index].first_client;
  if (first < 0) return;
  const auto each_client = [&](auto&& visit) {
    std::size_t n = 0;
    for (std::int32_t c = first; c >= 0; c = next_client_[static_cast<std::size_t>(c)])
      visit(static_cast<std::size_t>(c), n++);
    return n;
  };
  filler_.vessels.clear();
  const std::size_t count = each_client([&](std::size_t c, std::size_t) {
    filler_.vessels.push_back({demand_[c], 1});
  });
  filler_.poured.resize(count);
  filler_.fill(filler_.vessels, capacity, turn, filler_.poured);
  CapSM at_rest = leaf ? capacity : CapSM{};
  each_client([&](std::size_t c, std::size_t n) {
    decision.clients[c].own = filler_.poured[n];
    if (leaf) at_rest -= filler_.poured[n];
    filler_.vessels[n].room = std::min(headroom, most_[c] - filler_.poured[n]);
  });
  filler_.fill(filler_.vessels, headroom, 0, filler_.poured);
  each_client([&](std::size_t c, std::size_t n) {
    decision.clients[c].own += filler_.poured[n];
    decision.clients[c].grant = std::min(decision.clients[c].own + at_rest, most_[c]);
  });
}

}  // namespace gpuctl::sched
