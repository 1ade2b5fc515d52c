#include "gpuctld/scheduler.h"

#include <algorithm>

namespace gpuctl::daemon {

Scheduler::Scheduler(std::vector<Gpu> devices, sched::SliceTree tree)
    : devices_(std::move(devices)), tree_(std::move(tree)), nodes_(tree_.nodes()), boards_(devices_.size()) {
  for (const Gpu& gpu : devices_) sms_.push_back(gpu.sms);
  rebuild();
  decide(0);
}

void Scheduler::set_tree(sched::SliceTree tree, std::uint64_t now_ns) {
  tree_ = std::move(tree);
  nodes_ = tree_.nodes();
  rebuild();
  apply_priorities(now_ns);
  decide(now_ns);
}

Client& Scheduler::add(Client client, std::uint64_t now_ns) {
  Client& added = clients_.emplace_back(std::move(client));
  rebuild();
  apply_priorities(now_ns);
  decide(now_ns);
  return added;
}

void Scheduler::remove(Client& client, std::uint64_t now_ns) {
  clients_.remove_if([&](const Client& other) { return &other == &client; });
  rebuild();
  decide(now_ns);
}

void Scheduler::set_hint(Client& client, std::int32_t priority, std::uint64_t now_ns) {
  client.hint = priority;
  apply_priorities(now_ns);
}

void Scheduler::apply_priorities(std::uint64_t now_ns) {
  for (Client& client : clients_) {
    const std::int32_t allowed = nodes_[client.node].priority;
    client.set_priority(std::min(client.hint.value_or(allowed), allowed), now_ns);
  }
}

/// Membership or the tree changed: the boards list the clients anew.
void Scheduler::rebuild() {
  for (Board& board : boards_) board.members.clear();
  for (Client& client : clients_) {
    std::uint32_t node = 0;
    for (const auto& [path, slice] : tree_.slices()) {
      if (path == client.slice()) client.node = node;
      ++node;
    }
    for (std::size_t slot = 0; slot < client.slots().size(); ++slot)
      if (const int device = client.slots()[slot].device; device >= 0)
        boards_[static_cast<std::size_t>(device)].members.push_back({&client, slot});
  }
  for (Board& board : boards_) board.inputs.resize(board.members.size());
}

void Scheduler::update(std::uint64_t now_ns) {
  bool changed = false, starving = false;
  for (Client& client : clients_) changed |= client.read_usage(sms_);
  for (const Board& board : boards_) starving |= board.starving;
  if (starving && now_ns - turn_ns_ >= static_cast<std::uint64_t>(std::chrono::nanoseconds(kTurn).count())) {
    turn_ns_ = now_ns;
    ++turn_;
    changed = true;
  }
  if (changed) decide(now_ns);
}

void Scheduler::decide(std::uint64_t now_ns) {
  for (std::size_t device = 0; device < boards_.size(); ++device)
    decide_board(boards_[device], sched::CapSM{sms_[device]}, now_ns);
}

void Scheduler::decide_board(Board& board, sched::CapSM capacity, std::uint64_t now_ns) {
  for (std::size_t i = 0; i < board.members.size(); ++i) {
    const auto [client, slot] = board.members[i];
    board.inputs[i] = {client->node, sched::CapSM{client->slots()[slot].demand}};
  }
  allocator_.decide(nodes_, board.inputs, capacity, turn_, board.decision);

  // Shrinks first: those who wait for the SMs wait for them, not for the futexes of those who gain.
  board.starving = false;
  for (const bool shrinks : {true, false}) {
    for (std::size_t i = 0; i < board.members.size(); ++i) {
      const auto [client, index] = board.members[i];
      Client::Slot& slot = client->slots()[index];
      const sched::CapSM grant = board.decision.clients[i].grant;
      if ((grant.count < slot.written) == shrinks && (grant.count != slot.written || slot.epoch == 0))
        client->write_grant(index, grant.count, now_ns);
      slot.granted = grant;
      board.starving |= grant.count == 0 && slot.demand != 0;
    }
  }
}

std::vector<Client*> Scheduler::check_deadlines(std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  std::vector<Client*> found;
  for (Client& client : clients_) {
    bool disobeys = false;
    for (std::size_t slot = 0; slot < client.slots().size(); ++slot)
      disobeys |= client.check_deadline(slot, deadline, now_ns);
    if (disobeys) found.push_back(&client);
  }
  return found;
}

void Scheduler::storm(std::mt19937_64& random, std::uint64_t now_ns) {
  for (Board& board : boards_) {
    for (const auto& [client, slot] : board.members) {
      const std::uint32_t most = client->slots()[slot].granted.count;
      const std::uint32_t grant = std::uniform_int_distribution<std::uint32_t>(0, most)(random);
      if (grant != client->slots()[slot].written) client->write_grant(slot, grant, now_ns);
    }
  }
}

bool Scheduler::busy() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const Client& client) { return client.busy(); });
}

std::size_t Scheduler::clients_in(std::string_view slice) const {
  return static_cast<std::size_t>(
      std::count_if(clients_.begin(), clients_.end(), [&](const Client& client) { return client.slice() == slice; }));
}

std::vector<Scheduler::SliceUse> Scheduler::slice_use() const {
  std::vector<SliceUse> use(nodes_.size());
  for (const Board& board : boards_) {
    for (std::size_t i = 0; i < use.size(); ++i) {
      const sched::NodeDecision& node = board.decision.nodes[i];
      use[i].granted = std::max(use[i].granted, node.given + node.headroom);
      use[i].demand = std::max(use[i].demand, node.demand);
    }
  }
  return use;
}

}  // namespace gpuctl::daemon
