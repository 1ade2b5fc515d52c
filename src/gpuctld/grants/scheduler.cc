#include "gpuctld/grants/scheduler.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "gpuctld/grants/time_slices.h"

namespace gpuctl::daemon {

Scheduler::Scheduler(std::vector<Gpu> devices, sched::SliceTree tree, std::chrono::nanoseconds deadline)
    : devices_(std::move(devices)), tree_(std::move(tree)), nodes_(tree_.nodes()), deadline_(deadline) {
  for (const Gpu& gpu : devices_) {
    grants_.emplace_back(gpu.sms);
    sms_.push_back(grants_.back().sms());
  }
  queues_.resize(grants_.size());
  nodes_on_.assign(grants_.size(), nodes_);
  work_.resize(grants_.size());
  rebuild(0);
  decide(0);
}

void Scheduler::set_tree(sched::SliceTree tree, std::uint64_t now_ns) {
  tree_ = std::move(tree);
  nodes_ = tree_.nodes();
  nodes_on_.assign(grants_.size(), nodes_);
  begin_anew(now_ns);
}

Client& Scheduler::add(Client client, std::uint64_t now_ns) {
  Client& added = clients_.emplace_back(std::move(client));
  begin_anew(now_ns);
  return added;
}

Client Scheduler::remove(Client& client, std::uint64_t now_ns) {
  time_slices_worked_ = time_slices_work();
  learn();
  for (auto& queues : queues_)
    for (auto& [path, queue] : queues) queue.forget(client, now_ns);
  const auto found =
      std::find_if(clients_.begin(), clients_.end(), [&](const Client& other) { return &other == &client; });
  Client removed = std::move(*found);
  clients_.erase(found);
  begin_anew(now_ns);
  return removed;
}

void Scheduler::set_hint(Client& client, std::int32_t priority, std::uint64_t now_ns) {
  client.hint = priority;
  begin_anew(now_ns);
}

void Scheduler::begin_anew(std::uint64_t now_ns) {
  rebuild(now_ns);
  apply_priorities(now_ns);
  apply_time_slices(now_ns);
  read_usage(now_ns);
  take_turns(now_ns);
  decide(now_ns);
}

void Scheduler::fault(Client& client, std::size_t slot, std::uint64_t now_ns) {
  learn();
  read_usage(now_ns);
  client.fault(slot);
  take_turns(now_ns);
  decide(now_ns);
}

std::int32_t Scheduler::priority_of(const Client& client) const {
  const std::int32_t allowed = nodes_[client.node].priority;
  return std::min(client.hint.value_or(allowed), allowed);
}

/// Every slice counts, with or without clients: the priorities of a client's streams change when an administrator
/// changes the tree, not whenever another program starts or ends. Among slices of equal priority those with a reserve
/// go first: SMs kept for a slice are of little use to it while blocks of others wait before its own.
std::vector<ipc::PriorityBand> Scheduler::bands() const {
  using Standing = std::pair<std::int32_t, bool>;  // priority, and whether there is a reserve
  std::vector<bool> reserved;
  std::set<Standing> different;
  for (const sched::NodeInput& node : nodes_) {
    const bool above = node.parent > 0 && reserved[static_cast<std::size_t>(node.parent)];
    reserved.push_back(above || (node.parent >= 0 && node.reserve > sched::CapSM{}));
    different.insert({node.priority, reserved.back()});
  }
  const auto standing = [&](const Client& client) { return Standing{priority_of(client), reserved[client.node]}; };
  for (const Client& client : clients_) different.insert(standing(client));
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(different.size(), ipc::kMostBands));
  std::vector<ipc::PriorityBand> bands;
  for (const Client& client : clients_) {
    const auto rank = static_cast<std::uint32_t>(std::distance(different.begin(), different.find(standing(client))));
    bands.push_back({.rank = std::min(rank, count - 1), .count = count});
  }
  return bands;
}

void Scheduler::apply_priorities(std::uint64_t now_ns) {
  const std::vector<ipc::PriorityBand> all = bands();
  auto band = all.begin();
  for (Client& client : clients_) client.set_priority(priority_of(client), *band++, now_ns);
}

void Scheduler::set_time_sliced(bool on, bool time_slices, std::uint64_t now_ns) {
  sets_time_slices_ = on && time_slices;
  for (std::size_t device = 0; device < devices_.size(); ++device)
    grants_[device].set_time_sliced(on && !devices_[device].software);
  begin_anew(now_ns);
}

void Scheduler::set_always_preemptible(bool on, std::uint64_t now_ns) {
  for (DeviceGrants& grants : grants_) grants.set_always_preemptible(on);
  begin_anew(now_ns);
}

void Scheduler::apply_time_slices(std::uint64_t now_ns) {
  struct Place {
    Client* client;
    std::size_t slot;
  };
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    std::vector<Place> places;
    std::vector<TimeShare> programs;
    for (Client& client : clients_) {
      for (std::size_t slot = 0; slot < client.slots().size(); ++slot) {
        if (client.slots()[slot].device != static_cast<int>(device)) continue;
        places.push_back({&client, slot});
        programs.push_back({client.node, priority_of(client)});
      }
    }
    const bool on = sets_time_slices_ && !devices_[device].software;
    const std::vector<std::uint32_t> slices =
        on ? time_slices(nodes_, programs) : std::vector<std::uint32_t>(places.size(), 0);
    for (std::size_t i = 0; i < places.size(); ++i) places[i].client->set_time_slice(places[i].slot, slices[i], now_ns);
  }
}

ipc::TimeSlice Scheduler::time_slices_work() const {
  ipc::TimeSlice found = time_slices_worked_;
  const auto tells_more = [&](ipc::TimeSlice state) {
    return state == ipc::TimeSlice::in_force || (found != ipc::TimeSlice::in_force && state > found);
  };
  for (const Client& client : clients_) {
    for (std::size_t slot = 0; slot < client.slots().size(); ++slot)
      if (tells_more(client.time_slice(slot))) found = client.time_slice(slot);
  }
  return found;
}

void Scheduler::rebuild(std::uint64_t now_ns) {
  std::vector<std::vector<DeviceGrants::Member>> members(grants_.size());
  for (Client& client : clients_) {
    std::uint32_t node = 0;
    for (const auto& [path, slice] : tree_.slices()) {
      if (path == client.slice()) client.node = node;
      ++node;
    }
    for (std::size_t slot = 0; slot < client.slots().size(); ++slot)
      if (const int device = client.slots()[slot].device; device >= 0)
        members[static_cast<std::size_t>(device)].push_back({&client, slot});
  }
  for (std::size_t device = 0; device < grants_.size(); ++device) grants_[device].renew(std::move(members[device]));
  apply_memory_limits();
  rebuild_queues(now_ns);
}

/// True if a demand changed.
bool Scheduler::read_usage(std::uint64_t now_ns) {
  bool changed = false;
  for (Client& client : clients_) changed |= client.read_usage(sms_, now_ns);
  return changed;
}

/// True if a slice became active or inactive on a device.
bool Scheduler::mark_active(std::uint64_t now_ns) {
  for (auto& work : work_) work.clear();
  for (const Client& client : clients_)
    for (const Client::Slot& slot : client.slots())
      if (slot.device >= 0) work_[static_cast<std::size_t>(slot.device)].push_back({client.node, slot.work_ns});
  bool changed = false;
  reserve_ends_ns_ = UINT64_MAX;
  for (std::size_t device = 0; device < grants_.size(); ++device) {
    const sched::Activity activity = sched::mark_active(nodes_on_[device], work_[device], now_ns);
    changed |= activity.changed;
    reserve_ends_ns_ = std::min(reserve_ends_ns_, activity.next_ns);
  }
  return changed;
}

void Scheduler::update(std::uint64_t now_ns) {
  learn();
  bool changed = read_usage(now_ns), starving = false;
  changed |= mark_active(now_ns);
  changed |= take_turns(now_ns);
  for (const DeviceGrants& grants : grants_) starving |= grants.starving();
  const auto lasts = [now_ns](std::uint64_t since_ns) { return std::chrono::nanoseconds(now_ns - since_ns); };
  // A turn's time begins when every client has what the turn gives it. Slow clients cannot put that off beyond the
  // deadline.
  if (waiting() && lasts(turn_began_ns_) < deadline_) turn_ns_ = now_ns;
  if (starving && lasts(turn_ns_) >= kTurn) {
    turn_ns_ = turn_began_ns_ = now_ns;
    ++turn_;
    changed = true;
  }
  if (changed)
    decide(now_ns);
  else
    write(now_ns);
}

void Scheduler::decide(std::uint64_t now_ns) {
  mark_active(now_ns);
  for (std::size_t device = 0; device < grants_.size(); ++device)
    grants_[device].decide(allocator_, nodes_on_[device], turn_);
  write(now_ns);
}

void Scheduler::write(std::uint64_t now_ns) {
  for (DeviceGrants& grants : grants_) grants.write(deadline_, now_ns);
}

std::vector<Client*> Scheduler::check_deadlines(std::uint64_t now_ns) {
  std::vector<Client*> found;
  for (Client& client : clients_) {
    bool disobeys = false;
    for (std::size_t slot = 0; slot < client.slots().size(); ++slot)
      disobeys |= client.check_deadline(slot, deadline_, now_ns);
    if (disobeys) found.push_back(&client);
  }
  return found;
}

void Scheduler::storm(Random& random, std::uint64_t now_ns) {
  for (DeviceGrants& grants : grants_) grants.storm(random, now_ns);
}

bool Scheduler::busy() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const Client& client) { return client.busy(); });
}

bool Scheduler::waiting() const {
  return std::any_of(grants_.begin(), grants_.end(), [](const DeviceGrants& grants) { return grants.waiting(); });
}

std::size_t Scheduler::clients_in(std::string_view slice) const {
  return static_cast<std::size_t>(
      std::count_if(clients_.begin(), clients_.end(), [&](const Client& client) { return client.slice() == slice; }));
}

std::vector<Scheduler::SliceUse> Scheduler::slice_use() const {
  std::vector<SliceUse> use(nodes_.size());
  for (const DeviceGrants& grants : grants_) {
    for (std::size_t i = 0; i < use.size(); ++i) {
      const sched::NodeDecision& node = grants.decision().nodes[i];
      use[i].granted = std::max(use[i].granted, node.given + node.headroom);
      use[i].demand = std::max(use[i].demand, node.demand);
    }
  }
  return use;
}

}  // namespace gpuctl::daemon
