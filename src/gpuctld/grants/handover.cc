#include "gpuctld/grants/handover.h"

#include <algorithm>

namespace gpuctl::daemon {

namespace {

/// `a` less `b`, at least 0.
std::uint32_t excess(std::uint32_t a, std::uint32_t b) {
  return a > b ? a - b : 0;
}

}  // namespace

bool Handover::step(const DeviceDecision& decision, std::span<const GrantState> clients, std::uint32_t sms,
                    std::span<NextGrant> next) {
  at_rest_.clear();
  for (const NodeRest& node : decision.nodes) at_rest_.push_back(node.inhabited ? 0 : node.at_rest);
  most_.resize(clients.size());
  std::uint32_t used = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const GrantState& client = clients[i];
    const std::uint32_t decided = decision.clients[i].capsm;
    const bool leaving = client.busy && !client.overdue;
    most_[i] = decision.clients[i].free ? decided : leaving ? client.may_use : std::min(client.written, decided);
    const std::uint32_t at_rest = decision.node_of(i).at_rest;
    std::uint32_t& there = at_rest_[decision.asked[i].node];
    there = std::max(there, std::min(most_[i], at_rest));
    used += excess(most_[i], at_rest);
  }
  for (const std::uint32_t there : at_rest_) used += there;

  std::uint32_t unused = excess(sms, used);
  const auto grow = [&unused](std::uint32_t from, std::uint32_t to) {
    const std::uint32_t more = std::min(excess(to, from), unused);
    unused -= more;
    return from + more;
  };
  bool waiting = false;
  for (const bool reserved : {true, false}) {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const NodeRest& node = decision.node_of(i);
      if (node.reserved != reserved) continue;
      const std::uint32_t decided = decision.clients[i].capsm;
      std::uint32_t& there = at_rest_[decision.asked[i].node];
      there = grow(there, node.at_rest);
      next[i].capsm = grow(std::min(std::max(most_[i], there), decided), decided);
      waiting |= next[i].capsm != decided;
    }
  }
  return waiting;
}

void place(const DeviceDecision& decision, std::span<const GrantState> clients, const DeviceConditions& where,
           std::span<NextGrant> next) {
  const std::uint32_t sms = where.capacity.count;
  std::uint32_t at = 0, used = 0;
  for (const bool reserved : {true, false}) {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      if (decision.node_of(i).reserved != reserved) continue;
      next[i].first = std::min(at, excess(sms, next[i].capsm));
      const bool takes_place = reserved || (clients[i].busy && !decision.clients[i].free);
      if (!where.time_sliced && takes_place) at += next[i].capsm;
    }
  }
  for (std::size_t i = 0; i < clients.size(); ++i)
    if (clients[i].busy) used += decision.clients[i].free ? next[i].capsm : std::max(next[i].capsm, clients[i].may_use);
  const std::uint32_t unused = excess(sms, used);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    next[i].idle = clients[i].busy ? unused : excess(unused, next[i].capsm);
    if (decision.clients[i].free) next[i].capsm = sms;
  }
}

}  // namespace gpuctl::daemon
