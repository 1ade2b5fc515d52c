#include "gpuctld/grants/device_grants.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/sm_range.h"

namespace gpuctl::daemon {

DeviceGrants::DeviceGrants(std::uint32_t sms) : where_{.capacity = sched::CapSM{std::min(sms, kMaxSms)}} {}

void DeviceGrants::renew(std::vector<Member> members, const DeviceConditions& where) {
  members_ = std::move(members);
  const auto [capacity, storms] = std::pair(where_.capacity, where_.storms);
  where_ = where;
  where_.capacity = capacity;
  where_.storms = storms;
  without_jobs_.division.nodes.clear();
  renewed_ = true;
}

/// By member: to how many SMs MPS keeps it.
std::vector<sched::CappedClient> DeviceGrants::capped() const {
  std::vector<sched::CappedClient> clients;
  for (const Member& member : members_)
    clients.push_back({member.client->node, sched::CapSM{slot(member).most_of(sched::kUnlimitedCapSM.count)}});
  return clients;
}

/// The bounds that gpuctld has to see to. MPS keeps the others: they are as if nobody had set them.
std::span<const sched::NodeInput> DeviceGrants::less_kept(std::span<const sched::NodeInput> nodes) {
  if (renewed_)
    less_kept_.kept =
        sched::KeptByMps(nodes, where_.time_sliced ? std::vector<sched::CappedClient>() : capped(), where_.capacity);
  if (!less_kept_.kept.any()) return nodes;
  less_kept_.nodes.assign(nodes.begin(), nodes.end());
  less_kept_.kept.lift(less_kept_.nodes);
  return less_kept_.nodes;
}

std::vector<bool> DeviceGrants::in_force_without_jobs(std::span<const sched::NodeInput> all_nodes) {
  const auto nodes = less_kept(all_nodes);
  std::vector<Resident> residents;
  for (const Member& member : members_) residents.push_back({.node = member.client->node});
  std::vector<bool> found;
  for (const InForce what : what_is_in_force(nodes, residents, where_)) found.push_back(what != InForce::nothing);
  return found;
}

InForce DeviceGrants::would_be_in_force(std::span<const sched::NodeInput> all_nodes, sched::CappedClient comes,
                                        DeviceConditions where) const {
  where.capacity = where_.capacity;
  where.storms = where_.storms;
  std::vector<sched::CappedClient> clients;
  if (!where.time_sliced) clients = capped(), clients.push_back(comes);
  std::vector<sched::NodeInput> nodes(all_nodes.begin(), all_nodes.end());
  sched::KeptByMps(nodes, clients, where.capacity).lift(nodes);
  std::vector<Resident> residents;
  for (const Member& member : members_) residents.push_back({.node = member.client->node});
  residents.push_back({.node = comes.node});
  return what_is_in_force(nodes, residents, where).back();
}

void DeviceGrants::find_standings(std::span<const sched::NodeInput> nodes) {
  std::vector<Resident> residents;
  for (const Member& member : members_)
    residents.push_back({.node = member.client->node,
                         .reports_jobs = slot(member).wanted_jobs != ipc::kNoJobs,
                         .capped = slot(member).mps_sms != 0,
                         .takes_turns = slot(member).queue != nullptr});
  standings_ = standings_of(nodes, residents, where_);
}

ClientState DeviceGrants::state_of(const Member& member) const {
  const Client::Slot& s = slot(member);
  return {.node = member.client->node,
          .demand = s.admitted_demand(),
          .admitted = s.admitted,
          .under_policy = s.queue != nullptr,
          .latest = s.latest,
          .credit = s.account.credit};
}

std::span<const sched::NodeDecision> DeviceGrants::parts_without_jobs(sched::Allocator& allocator,
                                                                      std::span<const sched::NodeInput> all_nodes) {
  const auto nodes = less_kept(all_nodes);
  if (renewed_) find_standings(nodes);
  clients_.clear();
  for (const Member& member : members_) {
    clients_.push_back(state_of(member));
    if (!clients_.back().under_policy) continue;
    clients_.back().demand = slot(member).demand;
    clients_.back().admitted = ipc::kUnlimited;
  }
  daemon::decide({nodes, clients_, standings_, where_}, allocator, without_jobs_);
  return without_jobs_.division.nodes;
}

void DeviceGrants::decide(sched::Allocator& allocator, std::span<const sched::NodeInput> all_nodes) {
  const auto nodes = less_kept(all_nodes);
  if (std::exchange(renewed_, false)) {
    find_standings(nodes);
    settled_.clear();
  }
  clients_.clear();
  for (const Member& member : members_) clients_.push_back(state_of(member));
  if (settled_.size() != clients_.size()) settled_ = settled_grants({nodes, clients_, standings_, where_}, allocator);
  for (std::size_t i = 0; i < clients_.size(); ++i) clients_[i].settled = settled_[i];
  daemon::decide({nodes, clients_, standings_, where_}, allocator, decision_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Client::Slot& s = slot(members_[i]);
    s.decided = decision_.clients[i].capsm;
    s.latest = decision_.clients[i].latest;
  }
  waiting_ = !where_.time_sliced;  // write() starts a handover
}

void DeviceGrants::charge(std::span<sched::NodeInput> all_nodes, std::uint64_t now_ns) {
  const std::chrono::nanoseconds elapsed(now_ns - std::min(now_ns, std::exchange(charged_ns_, now_ns)));
  if (!decision_.starving || elapsed.count() == 0) return;
  // A turn is longer while SMs are handed over. It counts as one all the same, or as two.
  const std::chrono::nanoseconds counts = std::min<std::chrono::nanoseconds>(elapsed, 2 * kTurn);
  const bool divided = without_jobs_.division.nodes.size() == all_nodes.size();
  sched::charge(all_nodes, divided ? without_jobs_.division : decision_.division, counts, kTurn);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const sched::ClientDecision& client = decision_.division.clients[i];
    slot(members_[i]).account.charge(client.due, client.given(), counts, kTurn);
  }
}

bool DeviceGrants::end_turn(std::span<sched::NodeInput> all_nodes, std::chrono::nanoseconds deadline,
                            std::uint64_t now_ns) {
  const auto lasts = [now_ns](std::uint64_t since_ns) { return std::chrono::nanoseconds(now_ns - since_ns); };
  if (!decision_.starving) {
    turn_ns_ = turn_began_ns_ = now_ns;
    return false;
  }
  // A turn's time begins when every client has what the turn gives it.
  if (waiting_ && lasts(turn_began_ns_) < deadline) turn_ns_ = now_ns;
  if (lasts(turn_ns_) < kTurn) return false;
  charge(all_nodes, now_ns);
  turn_ns_ = turn_began_ns_ = now_ns;
  sched::end_turn(all_nodes);
  for (const Member& member : members_) slot(member).account.end_turn();
  return true;
}

bool DeviceGrants::plan(std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  gather_states(deadline, now_ns);
  if (where_.time_sliced)
    for (std::size_t i = 0; i < members_.size(); ++i) next_[i].capsm = decision_.clients[i].capsm;
  else if (waiting_)
    waiting_ = handover_.step(decision_, states_, sms(), next_);
  else
    for (std::size_t i = 0; i < members_.size(); ++i) next_[i].capsm = states_[i].written;
  // What is inherited is given back only later, and then the others must get it.
  for (const Member& member : members_) waiting_ |= !where_.time_sliced && slot(member).inherited != 0;
  return place_and_record();
}

bool DeviceGrants::plan_storm(Random& random, std::uint64_t now_ns) {
  waiting_ = false;
  renewed_ |= !std::exchange(where_.storms, true);
  for (ClientOutcome& outcome : decision_.clients) {
    outcome.alone = outcome.settled = false;
    outcome.mode = ipc::Mode::workers;
  }
  gather_states({}, now_ns);
  for (std::size_t i = 0; i < members_.size(); ++i)
    next_[i].capsm = static_cast<std::uint32_t>(random.below(decision_.clients[i].capsm + std::uint64_t{1}));
  return place_and_record();
}

bool DeviceGrants::place_and_record() {
  place(decision_, states_, where_, next_);
  bool more = false;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Client::Slot& s = slot(members_[i]);
    const std::uint32_t may = std::max(states_[i].may_use, next_[i].capsm);
    if (where_.time_sliced || may <= s.recorded.sms) continue;
    s.to_record.sms = std::max(may, decision_.clients[i].capsm);  // a handover brings it there in steps
    more = true;
  }
  return more;
}

void DeviceGrants::keep_to_record() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::uint32_t most = std::max(slot(members_[i]).recorded.sms, states_[i].written);
    if (where_.time_sliced || decision_.clients[i].free() || next_[i].capsm <= most) continue;
    next_[i].capsm = most;
    waiting_ = true;
  }
}

void DeviceGrants::record() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Client::Slot& s = slot(members_[i]);
    s.to_record.sms = where_.time_sliced ? 0 : std::max(s.may_use(), decision_.clients[i].capsm);
  }
}

void DeviceGrants::gather_states(std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  states_.clear();
  for (const auto& [client, index, terms] : members_) {
    const Client::Slot& s = client->slots()[index];
    states_.push_back({s.written, s.may_use(), s.busy(), client->overdue(index, deadline, now_ns), s.doubtful});
  }
  next_.resize(members_.size());
}

void DeviceGrants::write(std::uint64_t now_ns) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    auto& [client, index, terms] = members_[i];
    terms.jobs = client->slots()[index].wanted_jobs;
    terms.reserve = decision_.clients[i].reserve;
    terms.alone = decision_.clients[i].alone;
    terms.in_force = standings_[i].in_force;
    terms.guaranteed = standings_[i].guaranteed;
    terms.reports_work = standings_[i].reports_work;
    terms.mode = decision_.clients[i].mode;
    terms.settled = decision_.clients[i].settled;
    const bool common = terms.mode == ipc::Mode::common;
    terms.common_sms = common ? standings_[i].guaranteed : terms.mode == ipc::Mode::lent ? sms() : 0;
    terms.first = common ? standings_[i].part_first : next_[i].first;
    client->write_terms(index, terms);
  }
  write_grants(now_ns);
}

/// Grants that shrink are written first: SMs are given back before time is spent on waking the clients that gain. One
/// that was idle may have begun with what it had; then nobody gains before it is known to have left.
void DeviceGrants::write_grants(std::uint64_t now_ns) {
  bool begun = false;
  const auto write = [&](std::size_t i) {
    members_[i].client->write_grant_if_new(members_[i].slot, next_[i].capsm, next_[i].idle, now_ns);
  };
  const auto shrinks = [this](std::size_t i) { return next_[i].capsm < states_[i].written; };
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (shrinks(i)) write(i);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // whoever begins later sees what it may use now
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (shrinks(i) && !states_[i].busy && !where_.time_sliced && !where_.storms)
      begun |= members_[i].client->begun_with(members_[i].slot, states_[i].written, now_ns);
  waiting_ |= begun;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (shrinks(i)) continue;
    if (begun) next_[i].capsm = states_[i].written;
    write(i);
  }
}

}  // namespace gpuctl::daemon
