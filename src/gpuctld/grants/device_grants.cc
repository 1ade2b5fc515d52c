#include "gpuctld/grants/device_grants.h"

#include <algorithm>
#include <utility>

#include "base/sm_range.h"
#include "sched/bounds.h"

namespace gpuctl::daemon {

namespace {

/// `a` less `b`, at least 0.
std::uint32_t excess(std::uint32_t a, std::uint32_t b) {
  return a > b ? a - b : 0;
}

}  // namespace

DeviceGrants::DeviceGrants(std::uint32_t sms) : capacity_{std::min(sms, kMaxSms)} {}

void DeviceGrants::renew(std::vector<Member> members) {
  members_ = std::move(members);
  residents_.clear();
  look_again_ = true;
  inputs_.resize(members_.size());
  next_.resize(members_.size());
  most_.resize(members_.size());
}

void DeviceGrants::decide(sched::Allocator& allocator, std::span<const sched::NodeInput> nodes, std::uint64_t turn) {
  const bool any_demand = std::any_of(members_.begin(), members_.end(),
                                      [&](const Member& member) { return slot(member).admitted_demand() > 0; });
  if (residents_changed()) look_what_is_in_force(nodes);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Client::Slot& s = slot(members_[i]);
    if (any_demand) s.latest = s.admitted_demand() > 0;
    inputs_[i] = {members_[i].client->node, sched::CapSM{demand_that_counts(nodes, i)}, sched::CapSM{s.admitted},
                  s.latest};
  }
  allocator.decide(nodes, inputs_, capacity_, turn, decision_);
  if (time_sliced_) decide_time_sliced(nodes);
  count_rest(nodes);
  starving_ = false;
  waiting_ = !time_sliced_;  // write() starts a handover
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Client::Slot& s = slot(members_[i]);
    s.decided = decision_.clients[i].grant.count;
    starving_ |= s.decided == 0 && s.admitted_demand() != 0;
    const std::uint32_t reserve = s.queue != nullptr ? 0 : own_reserve(nodes, inputs_[i].node);
    members_[i].client->write_reserve(members_[i].slot, reserve);
    const bool alone = !storms_ && members_.size() == 1 && s.queue == nullptr &&
                       sched::most_of(nodes, inputs_[i].node, capacity_) == capacity_;
    members_[i].client->write_alone(members_[i].slot, alone);
  }
}

bool DeviceGrants::residents_changed() {
  const auto told = [this](const Resident& resident) {
    return slot(members_[static_cast<std::size_t>(&resident - residents_.data())]).wanted_jobs != ipc::kNoJobs;
  };
  return std::exchange(look_again_, false) ||
         std::any_of(residents_.begin(), residents_.end(),
                     [&](const Resident& resident) { return resident.reports_jobs != told(resident); });
}

Circumstances DeviceGrants::circumstances() const {
  return {.capacity = capacity_, .time_sliced = time_sliced_, .storms = storms_, .always = always_};
}

std::vector<bool> DeviceGrants::obeys_without_jobs(std::span<const sched::NodeInput> nodes) const {
  std::vector<Resident> residents;
  for (const Member& member : members_) residents.push_back({.node = member.client->node});
  std::vector<bool> obeys;
  for (const InForce what : what_is_in_force(nodes, residents, circumstances()))
    obeys.push_back(what != InForce::nothing);
  return obeys;
}

void DeviceGrants::look_what_is_in_force(std::span<const sched::NodeInput> nodes) {
  residents_.clear();
  for (const Member& member : members_)
    residents_.push_back({member.client->node, slot(member).wanted_jobs != ipc::kNoJobs});
  in_force_ = what_is_in_force(nodes, residents_, circumstances());
  const std::vector<sched::CapSM> sure = sched::guaranteed(nodes, capacity_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto& [client, index] = members_[i];
    client->write_in_force(index, in_force_[i]);
    // A program keeps the number that it is told first. So it is not told of a suspended slice (max 0), which does not
    // stay suspended.
    const sched::CapSM most = sched::most_of(nodes, client->node, capacity_);
    const sched::CapSM told = time_sliced_ ? most : sure[client->node];
    client->write_guaranteed(index, most.count == 0 || told == capacity_ ? 0 : told.count);
    client->write_report_work(index, !time_sliced_ && may_be_lent(nodes, client->node));
  }
}

bool DeviceGrants::may_be_lent(std::span<const sched::NodeInput> nodes, std::size_t index) {
  for (auto n = static_cast<std::int32_t>(index); nodes[static_cast<std::size_t>(n)].parent >= 0;
       n = nodes[static_cast<std::size_t>(n)].parent) {
    const sched::NodeInput& node = nodes[static_cast<std::size_t>(n)];
    if (node.reserve > sched::CapSM{} && !node.strict) return true;
  }
  return false;
}

std::uint32_t DeviceGrants::demand_that_counts(std::span<const sched::NodeInput> nodes, std::size_t member) const {
  const std::uint32_t demand = slot(members_[member]).admitted_demand();
  if (time_sliced_ || !is_free(member)) return demand;
  const bool all_free =
      std::all_of(in_force_.begin(), in_force_.end(), [](InForce what) { return what == InForce::nothing; });
  if (all_free) return demand;  // no client obeys: the numbers only show what each wants
  sched::CapSM reserved{};
  for (auto n = static_cast<std::int32_t>(members_[member].client->node);
       nodes[static_cast<std::size_t>(n)].parent >= 0; n = nodes[static_cast<std::size_t>(n)].parent)
    reserved = std::max(reserved, nodes[static_cast<std::size_t>(n)].reserve);
  return std::min(demand, reserved.count);
}

void DeviceGrants::decide_time_sliced(std::span<const sched::NodeInput> nodes) {
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    decision_.nodes[n].given = sched::most_of(nodes, n, capacity_);
    decision_.nodes[n].headroom = {};
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const sched::CapSM all = std::min(sched::most_of(nodes, inputs_[i].node, capacity_), inputs_[i].most);
    decision_.clients[i] = {.grant = all, .own = all};
  }
}

std::uint32_t DeviceGrants::own_reserve(std::span<const sched::NodeInput> nodes, std::size_t index) const {
  if (time_sliced_) return sched::most_of(nodes, index, capacity_) == capacity_ ? capacity_.count : 0;
  if (nodes[index].parent < 0) return 0;
  for (auto n = static_cast<std::int32_t>(index); n >= 0; n = nodes[static_cast<std::size_t>(n)].parent) {
    if (nodes[static_cast<std::size_t>(n)].max < capacity_) return 0;
  }
  // The slices above pass it on whatever their own mode is: they owe it what is kept free below them.
  return nodes[index].keeps_reserve() ? std::min(nodes[index].reserve, capacity_).count : 0;
}

/// Computes what each leaf has beyond its clients' own parts.
void DeviceGrants::count_rest(std::span<const sched::NodeInput> nodes) {
  nodes_.assign(nodes.size(), {});
  for (std::size_t n = 0; n < nodes.size(); ++n) {  // parents first
    nodes_[n].at_rest = (decision_.nodes[n].given + decision_.nodes[n].headroom).count;
    if (nodes[n].parent < 0) continue;
    nodes_[n].reserved = nodes[n].reserve > sched::CapSM{};
    nodes_[static_cast<std::size_t>(nodes[n].parent)].at_rest = 0;
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    Node& node = nodes_[inputs_[i].node];
    node.inhabited = true;
    node.at_rest = excess(node.at_rest, decision_.clients[i].own.count);
  }
}

void DeviceGrants::write(std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  if (time_sliced_)
    for (std::size_t i = 0; i < members_.size(); ++i) next_[i] = slot(members_[i]).decided;
  else if (waiting_)
    hand_over(deadline, now_ns);
  else
    for (std::size_t i = 0; i < members_.size(); ++i) next_[i] = slot(members_[i]).written;
  write_next(now_ns);
}

/// Computes how much of the decision can be written now.
void DeviceGrants::hand_over(std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  std::uint32_t used = 0;
  for (Node& node : nodes_) node.there = node.inhabited ? 0 : node.at_rest;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto& [client, index] = members_[i];
    const Client::Slot& s = client->slots()[index];
    const bool leaving = s.busy() && !client->overdue(index, deadline, now_ns);
    most_[i] = is_free(i) ? s.decided : leaving ? s.may_use() : std::min(s.written, s.decided);
    Node& node = nodes_[inputs_[i].node];
    node.there = std::max(node.there, std::min(most_[i], node.at_rest));
    used += excess(most_[i], node.at_rest);
  }
  for (const Node& node : nodes_) used += node.there;

  std::uint32_t free = excess(capacity_.count, used);
  const auto grow = [&free](std::uint32_t from, std::uint32_t to) {
    const std::uint32_t more = std::min(excess(to, from), free);
    free -= more;
    return from + more;
  };
  waiting_ = false;
  for (const bool reserved : {true, false}) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Node& node = nodes_[inputs_[i].node];
      if (node.reserved != reserved) continue;
      const std::uint32_t decided = slot(members_[i]).decided;
      node.there = grow(node.there, node.at_rest);
      next_[i] = grow(std::min(std::max(most_[i], node.there), decided), decided);
      waiting_ |= next_[i] != decided;
    }
  }
}

/// A grant is a number of SMs. Kernels that can only be confined to certain SMs get them in this order. Slices with a
/// reserve come first, so their place never depends on what others do.
void DeviceGrants::place() {
  std::uint32_t at = 0;
  for (const bool reserved : {true, false}) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto& [client, index] = members_[i];
      if (nodes_[inputs_[i].node].reserved != reserved) continue;
      client->write_first(index, std::min(at, excess(capacity_.count, next_[i])));
      if (!time_sliced_ && (reserved || client->slots()[index].busy())) at += next_[i];
    }
  }
}

/// Grants that shrink are written first: SMs are given back before time is spent on waking the clients that gain.
void DeviceGrants::write_next(std::uint64_t now_ns) {
  place();
  std::uint32_t used = 0;
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (const Client::Slot& s = slot(members_[i]); s.busy())
      used += is_free(i) ? next_[i] : std::max(next_[i], s.may_use());
  const std::uint32_t unused = excess(capacity_.count, used);
  for (const bool losers : {true, false}) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto& [client, index] = members_[i];
      const Client::Slot& s = client->slots()[index];
      const std::uint32_t told = is_free(i) ? capacity_.count : next_[i];
      if ((told < s.written) != losers) continue;
      const std::uint32_t idle = s.busy() ? unused : excess(unused, next_[i]);
      if (told != s.written || s.epoch == 0)
        client->write_grant(index, told, idle, now_ns);
      else if (idle != s.idle)
        client->write_idle(index, idle);
    }
  }
}

void DeviceGrants::storm(Random& random, std::uint64_t now_ns) {
  waiting_ = false;
  look_again_ |= !std::exchange(storms_, true);
  for (const auto& [client, index] : members_) client->write_alone(index, false);
  for (std::size_t i = 0; i < members_.size(); ++i)
    next_[i] = static_cast<std::uint32_t>(random.below(slot(members_[i]).decided + std::uint64_t{1}));
  write_next(now_ns);
}

}  // namespace gpuctl::daemon
