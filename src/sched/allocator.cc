#include "sched/allocator.h"

#include <algorithm>
#include <utility>

#include "sched/slice.h"

namespace gpuctl::sched {

namespace {
CapSM bounded_sum(CapSM a, CapSM b, CapSM bound) {
  return std::min(CapSM{a.count + b.count}, bound);
}
}  // namespace

template <class Visit>
void Allocator::each_child(std::size_t index, Visit visit) const {
  for (std::int32_t c = nodes_[index].first_child; c >= 0; c = nodes_[static_cast<std::size_t>(c)].next_sibling)
    visit(static_cast<std::size_t>(c));
}

/// The place of each client in demands_, and its index in the input.
template <class Visit>
void Allocator::each_client(std::size_t index, Visit visit) const {
  const std::size_t first = nodes_[index].first_client, count = nodes_[index].clients;
  if (scattered_)
    for (std::size_t n = 0; n < count; ++n) visit(n, residents_[first + n]);
  else
    for (std::size_t n = 0; n < count; ++n) visit(n, first + n);
}

void Allocator::decide(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity,
                       Decision& decision) {
  decision.nodes.assign(nodes.size(), {});
  decision.clients.resize(clients.size());  // not cleared: find_dues() and divide() write every client
  decision.takes_turns = false;
  link(nodes, clients, capacity);
  gather(nodes, capacity, decision);
  decision.nodes[0].given = std::min(capacity, nodes[0].max);
  decision.nodes[0].due = due_of(decision.nodes[0].given);
  const auto has_any = [&](std::size_t i) { return nodes_[i].peopled || nodes_[i].want > CapSM{}; };
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (has_any(i)) find_dues(i, nodes, decision);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (has_any(i)) divide(i, nodes, clients, capacity, decision);
}

/// Lists the children and the clients of each node, in the order of the input.
void Allocator::link(std::span<const NodeInput> nodes, std::span<const ClientInput> clients, CapSM capacity) {
  nodes_.assign(nodes.size(), Node{});
  demands_.resize(clients.size());
  const std::span<Claimant> demands = demands_;
  scattered_ = any_demand_ = false;
  // Neighbours are often in the same node, so a run of them is summed in registers and added to the node once.
  for (std::size_t c = 0; c < clients.size();) {
    const std::uint32_t index = clients[c].node;
    const std::size_t begin = c;
    std::uint64_t want = 0;
    std::uint32_t most = 0;
    bool latest = false;
    for (; c < clients.size() && clients[c].node == index; ++c) {
      const CapSM demand = std::min(std::min(clients[c].demand, clients[c].most), capacity);
      demands[c].demand = demand;
      want += demand.count;
      most |= clients[c].most.count;
      latest |= clients[c].latest;
    }
    Node& node = nodes_[index];
    scattered_ |= node.clients > 0;
    node.first_client = static_cast<std::uint32_t>(begin);
    node.clients += static_cast<std::uint32_t>(c - begin);
    want = std::min<std::uint64_t>(want, kUnlimitedCapSM.count);
    node.own_want = bounded_sum(node.own_want, CapSM{static_cast<std::uint32_t>(want)}, kUnlimitedCapSM);
    node.open |= most > 0;
    node.latest = node.own_latest |= latest;
    any_demand_ |= want > 0;
  }
  if (scattered_) gather_clients(clients, capacity);
  for (Node& node : nodes_) node.inhabited = node.open, node.peopled = node.clients > 0;
  for (std::size_t i = nodes.size(); i-- > 1;) {
    Node& parent = nodes_[static_cast<std::size_t>(nodes[i].parent)];
    nodes_[i].next_sibling = parent.first_child;
    parent.first_child = static_cast<std::int32_t>(i);
    parent.inhabited |= nodes_[i].inhabited;
    parent.peopled |= nodes_[i].peopled;
    parent.latest |= nodes_[i].latest;
  }
}

/// Puts the clients of each node side by side, in the order of the input.
void Allocator::gather_clients(std::span<const ClientInput> clients, CapSM capacity) {
  residents_.resize(clients.size());
  std::uint32_t first = 0;
  for (Node& node : nodes_) {
    node.first_client = first;
    first += std::exchange(node.clients, 0);
  }
  for (std::size_t c = 0; c < clients.size(); ++c) {
    Node& node = nodes_[clients[c].node];
    const std::size_t at = node.first_client + node.clients++;
    residents_[at] = static_cast<std::uint32_t>(c);
    demands_[at].demand = std::min(std::min(clients[c].demand, clients[c].most), capacity);
  }
}

/// Bottom up: what each node could use or must keep free (want), and what it gets whatever the others want (floor).
void Allocator::gather(std::span<const NodeInput> nodes, CapSM capacity, Decision& decision) {
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const NodeInput& input = nodes[i];
    Node& node = nodes_[i];
    const CapSM max = std::min(input.max, capacity), reserve = std::min(input.reserve, max);
    NodeDecision& result = decision.nodes[i];
    result.demand = bounded_sum(result.demand, node.own_want, max);
    node.want = bounded_sum(node.want, node.own_want, max);
    if (input.keeps_reserve()) node.want = std::max(node.want, reserve);
    node.floor = std::min(reserve, node.want);
    if (input.parent < 0) continue;
    Node& parent = nodes_[static_cast<std::size_t>(input.parent)];
    NodeDecision& parent_result = decision.nodes[static_cast<std::size_t>(input.parent)];
    parent.want = bounded_sum(parent.want, node.want, kUnlimitedCapSM);
    parent_result.demand = bounded_sum(parent_result.demand, result.demand, kUnlimitedCapSM);
  }
}

/// Top down: what each child and each client of the node is due of what the node is due.
void Allocator::find_dues(std::size_t index, std::span<const NodeInput> nodes, Decision& decision) {
  const Node& node = nodes_[index];
  NodeDecision& mine = decision.nodes[index];
  Due for_clients = mine.due;
  if (node.first_child >= 0) {
    claims_.clear();
    each_child(index, [&](std::size_t c) {
      claims_.push_back({nodes_[c].floor, nodes_[c].want, nodes[c].weight, nodes[c].priority});
    });
    claims_.push_back({CapSM{}, node.own_want, kWeightDefault, 0});
    dues_.resize(claims_.size());
    nodes[index].policy->divide(claims_, mine.due, filler_, dues_);
    std::size_t n = 0;
    each_child(index, [&](std::size_t c) { decision.nodes[c].due = dues_[n++]; });
    for_clients = mine.own_due = dues_[n];
  }
  const std::size_t count = node.clients;
  if (count == 0) return;
  if (dues_.size() < count) dues_.resize(count);
  const std::span<Due> dues{dues_.data(), count};
  filler_.share({demands_.data() + node.first_client, count}, for_clients, dues);
  each_client(index, [&](std::size_t n, std::size_t c) {
    decision.clients[c].due = dues[n];
    decision.takes_turns |= decision.clients[c].waits_for_turns();
  });
}

/// Top down: what the node was given becomes whole SMs for each; the rest of it becomes headroom. Headroom goes first
/// to those that have demand, because blocks run faster when fewer of them share an SM. While no client of the device
/// has demand, it goes first to those that had it last. What these may not have goes to the others.
void Allocator::divide(std::size_t index, std::span<const NodeInput> nodes, std::span<const ClientInput> clients,
                       CapSM capacity, Decision& decision) {
  const Node& node = nodes_[index];
  NodeDecision& mine = decision.nodes[index];
  if (node.first_child < 0) {
    divide_among_clients(index, clients, mine.given, mine.headroom, true, decision);
    return;
  }

  wants_.clear(), dues_.clear(), credits_.clear();
  const auto add = [&](CapSM want, Due due, const TurnAccount& account) {
    wants_.push_back({want, 1});
    dues_.push_back(due);
    credits_.push_back(account.credit);
  };
  each_child(index, [&](std::size_t c) { add(nodes_[c].want, decision.nodes[c].due, nodes[c].account); });
  add(node.own_want, mine.own_due, nodes[index].own_account);
  given_.resize(wants_.size());
  filler_.round(wants_, dues_, credits_if(decision.takes_turns), mine.given, given_);

  CapSM pool = mine.given + mine.headroom;
  std::size_t n = 0;
  each_child(index, [&](std::size_t c) {
    decision.nodes[c].given = given_[n++];
    pool -= decision.nodes[c].given;
  });
  mine.own_given = given_[n];
  pool -= mine.own_given;
  filler_.parts.resize(n + 1);
  CapSM own_headroom{};
  const auto comes_first = [&](std::size_t c) {
    return any_demand_ ? decision.nodes[c].demand > CapSM{} : nodes_[c].latest;
  };
  const bool own_comes_first = any_demand_ ? node.own_want > CapSM{} : node.own_latest;
  for (const bool first : {true, false}) {
    if (pool.count == 0) break;
    filler_.claimants.clear();
    each_child(index, [&](std::size_t c) {
      const bool welcome = nodes_[c].inhabited && comes_first(c) == first;
      filler_.claimants.push_back(
          {welcome ? std::min(nodes[c].max, capacity) - decision.nodes[c].given : CapSM{}, nodes[c].weight});
    });
    filler_.claimants.push_back({node.open && own_comes_first == first ? pool : CapSM{}, kWeightDefault});
    filler_.fill(filler_.claimants, pool, filler_.parts);
    n = 0;
    each_child(index, [&](std::size_t c) {
      decision.nodes[c].headroom += filler_.parts[n];
      pool -= filler_.parts[n++];
    });
    own_headroom += filler_.parts[n];
    pool -= filler_.parts[n];
  }
  divide_among_clients(index, clients, mine.own_given, own_headroom, false, decision);
}

std::span<const Due> Allocator::credits_if(bool takes_turns) const {
  return takes_turns ? std::span<const Due>(credits_) : std::span<const Due>();
}

/// `leaf`: the part of `capacity` that no client demands is a kept reserve not in use. It is headroom for each of the
/// clients.
void Allocator::divide_among_clients(std::size_t index, std::span<const ClientInput> clients, CapSM capacity,
                                     CapSM headroom, bool leaf, Decision& decision) {
  const std::size_t first = nodes_[index].first_client, count = nodes_[index].clients;
  if (count == 0) return;
  const std::span<Claimant> claimants{demands_.data() + first, count};
  if (parts_.size() < count) parts_.resize(count);
  const std::span<CapSM> parts{parts_.data(), count};
  const std::span<ClientDecision> decided = decision.clients;
  dues_.resize(count), credits_.resize(count);
  each_client(index, [&](std::size_t n, std::size_t c) { dues_[n] = decided[c].due, credits_[n] = clients[c].credit; });
  filler_.round(claimants, dues_, credits_if(decision.takes_turns), capacity, parts);
  const CapSM at_rest = leaf ? capacity - std::min(capacity, nodes_[index].own_want) : CapSM{};
  each_client(index, [&](std::size_t n, std::size_t c) { decided[c].own = parts[n]; });
  const auto comes_first = [&](const ClientInput& client) {
    return any_demand_ ? client.demand > CapSM{} : client.latest;
  };
  for (const bool first : {true, false}) {
    if (headroom.count == 0) break;
    each_client(index, [&](std::size_t n, std::size_t c) {
      claimants[n].demand =
          comes_first(clients[c]) == first ? std::min(headroom, clients[c].most - decided[c].own) : CapSM{};
    });
    filler_.fill(claimants, headroom, parts);
    each_client(index, [&](std::size_t n, std::size_t c) {
      decided[c].own += parts[n];
      headroom -= parts[n];
    });
  }
  each_client(index, [&](std::size_t, std::size_t c) {
    decided[c].grant = std::min(decided[c].own + at_rest, clients[c].most);
  });
}

void charge(std::span<NodeInput> nodes, const Decision& decision, std::chrono::nanoseconds elapsed,
            std::chrono::nanoseconds turn) {
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const NodeDecision& node = decision.nodes[n];
    nodes[n].account.charge(node.due, node.given, elapsed, turn);
    nodes[n].own_account.charge(node.own_due, node.own_given, elapsed, turn);
  }
}

void end_turn(std::span<NodeInput> nodes) {
  for (NodeInput& node : nodes) node.account.end_turn(), node.own_account.end_turn();
}

}  // namespace gpuctl::sched
