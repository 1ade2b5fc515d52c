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
  std::uint32_t taken = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const GrantState& client = clients[i];
    const std::uint32_t decided = decision.clients[i].capsm;
    const bool leaving = client.busy && !client.overdue;
    most_[i] = decision.clients[i].free() ? decided : leaving ? client.may_use : std::min(client.written, decided);
    const std::uint32_t at_rest = client.doubtful ? 0 : decision.node_of(i).at_rest;
    std::uint32_t& there = at_rest_[decision.asked[i].node];
    there = std::max(there, std::min(most_[i], at_rest));
    taken += excess(most_[i], at_rest);
  }
  for (const std::uint32_t there : at_rest_) taken += there;

  const auto grow = [&](std::uint32_t from, std::uint32_t to) {
    const std::uint32_t gain = std::min(excess(to, from), excess(sms, taken));
    taken += gain;
    return from + gain;
  };
  bool waiting = false;
  for (const bool reserved : {true, false}) {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const NodeRest& node = decision.node_of(i);
      if (node.reserved != reserved) continue;
      const std::uint32_t decided = decision.clients[i].capsm;
      std::uint32_t& there = at_rest_[decision.asked[i].node];
      there = grow(there, node.at_rest);
      const std::uint32_t had = clients[i].doubtful ? std::min(most_[i], clients[i].written) : most_[i];
      const std::uint32_t has = std::min(std::max(had, there), decided);
      next[i].capsm = grow(has, decided);
      waiting |= next[i].capsm != decided;
    }
  }
  return waiting;
}

void place(const DeviceDecision& decision, std::span<const GrantState> clients, const DeviceConditions& where,
           std::span<NextGrant> next) {
  const std::uint32_t sms = where.capacity.count;
  std::uint32_t used = 0;
  for (std::size_t i = 0; i < clients.size(); ++i)
    next[i].first = where.time_sliced ? 0 : std::min(decision.clients[i].first, excess(sms, next[i].capsm));
  for (std::size_t i = 0; i < clients.size(); ++i)
    if (clients[i].busy)
      used += decision.clients[i].free() ? next[i].capsm : std::max(next[i].capsm, clients[i].may_use);
  const std::uint32_t unused = excess(sms, used);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    next[i].idle = clients[i].busy ? unused : excess(unused, next[i].capsm);
    if (decision.clients[i].free()) next[i].capsm = sms;
  }
}

}  // namespace gpuctl::daemon
