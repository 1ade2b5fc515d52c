#include "sched/residency/beside.h"

#include <algorithm>
#include <tuple>

namespace gpuctl::sched {

/// Takes workers from who has most for its weight, until every client that has anything finds room.
void GrowBeside::find_room(std::span<const NodeInput> nodes, std::span<const CapSM> at_rest, const SmLimits& sm,
                           CapSM sms, std::span<Neighbour> clients) {
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const Neighbour& poor = clients[i];
    if (poor.own == CapSM{} || poor.footprint.blocks.empty()) continue;
    before_.clear();
    for (const Neighbour& client : clients) before_.push_back(client.own);
    const auto finds = [&] {
      SmUse beside;
      for (const CapSM kept : at_rest) beside += least_use_of(sm, {}, kept, sms);
      for (std::size_t other = 0; other < clients.size(); ++other)
        if (other != i) beside += least_use_of(sm, clients[other].footprint, clients[other].own, sms);
      return finds_room(sm, poor.footprint, poor.own, sms, beside);
    };
    const auto give_one = [&] {
      Neighbour* rich = nullptr;
      for (Neighbour& other : clients) {
        if (&other == &poor || !other.gives || nodes[other.node].priority > nodes[poor.node].priority) continue;
        const CapSM less = one_worker_less(sm, other.footprint, other.own, sms);
        if (less == other.own || less < other.footprint.kept) continue;
        const auto has_more = [&](const Neighbour& a, const Neighbour& b) {
          return std::uint64_t{a.own.count} * nodes[b.node].weight > std::uint64_t{b.own.count} * nodes[a.node].weight;
        };
        if (rich == nullptr || has_more(other, *rich)) rich = &other;
      }
      if (rich != nullptr) rich->own = one_worker_less(sm, rich->footprint, rich->own, sms);
      return rich != nullptr;
    };
    bool found = finds();
    while (!found && give_one()) found = finds();
    for (std::size_t other = 0; !found && other < clients.size(); ++other) clients[other].own = before_[other];
  }
}

void GrowBeside::run(std::span<const NodeInput> nodes, std::span<const CapSM> at_rest, const SmLimits& sm, CapSM sms,
                     std::span<Neighbour> clients) {
  find_room(nodes, at_rest, sm, sms, clients);
  SmUse all;
  // A slice that may have the device has no limit: its clients may share each SM as well.
  left_.clear();
  for (const NodeInput& node : nodes) left_.push_back(node.max < sms ? node.max : kUnlimitedCapSM);
  const auto take = [&](std::uint32_t node, CapSM amount) {
    each_up_to_root(nodes, node, [&](std::size_t n) { left_[n] -= std::min(left_[n], amount); });
  };
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    all += use_of(sm, {}, at_rest[n], sms);
    take(n, at_rest[n]);
  }
  for (const Neighbour& client : clients) {
    all += use_of(sm, client.footprint, client.own, sms);
    take(client.node, client.own);
  }
  order_.clear();
  for (std::uint32_t i = 0; i < clients.size(); ++i)
    if (clients[i].own < clients[i].most) order_.push_back(i);
  // The greatest priority first, and of equal ones the one with the least for its weight.
  const auto later = [&](std::uint32_t a, std::uint32_t b) {
    const NodeInput &at = nodes[clients[a].node], &bt = nodes[clients[b].node];
    return std::tuple(-std::int64_t{at.priority}, std::uint64_t{clients[a].own.count} * bt.weight, a) >
           std::tuple(-std::int64_t{bt.priority}, std::uint64_t{clients[b].own.count} * at.weight, b);
  };
  while (!order_.empty()) {
    const auto first = std::ranges::min_element(order_, [&](auto a, auto b) { return later(b, a); });
    Neighbour& client = clients[*first];
    CapSM most = client.most;
    each_up_to_root(nodes, client.node, [&](std::size_t n) { most = std::min(most, client.own + left_[n]); });
    const CapSM next = std::min(next_amount(sm, client.footprint, client.own, sms), most);
    SmUse more = all;
    more -= use_of(sm, client.footprint, client.own, sms);
    more += use_of(sm, client.footprint, next, sms);
    if (next > client.own && fits(sm, more)) {
      all = more;
      take(client.node, next - client.own);
      client.own = next;
    } else {
      order_.erase(first);
    }
  }
}

}  // namespace gpuctl::sched
