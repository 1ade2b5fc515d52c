#include "gpuctld/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/plural.h"
#include "gpuctld/clock.h"
#include "gpuctld/grants/time_slices.h"
#include "gpuctld/host/mps_places.h"
#include "sched/effective/fit_reserves.h"
#include "sched/effective/kept_by_mps.h"
#include "sched/kept_memory.h"

namespace gpuctl::daemon {

namespace {

constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

/// By slice: its index in the tree before.
std::vector<std::size_t> indices_before(const sched::Slices& before, const sched::Slices& slices) {
  std::vector<std::size_t> indices;
  std::size_t index = 0;
  for (auto was = before.begin(); const auto& [path, slice] : slices) {  // both are in the same order
    for (; was != before.end() && was->first != path && sched::PathLess()(was->first, path); ++was) ++index;
    indices.push_back(was != before.end() && was->first == path ? index : kNowhere);
  }
  return indices;
}

/// A slice that stays keeps what it is due.
void keep_accounts(std::span<const std::size_t> indices, std::span<const sched::NodeInput> before,
                   std::span<sched::NodeInput> nodes) {
  for (std::size_t n = 0; n < nodes.size(); ++n)
    if (indices[n] < before.size())
      nodes[n].account = before[indices[n]].account, nodes[n].own_account = before[indices[n]].own_account;
}

/// So is what its programs have waited.
void keep_pressure(std::span<const std::size_t> indices, std::vector<sched::Pressure>& pressure) {
  const std::vector<sched::Pressure> before = std::exchange(pressure, {});
  for (const std::size_t index : indices) pressure.push_back(index < before.size() ? before[index] : sched::Pressure());
}

/// The reserve of a slice that stays is held as before.
void keep_work(std::span<const std::size_t> indices, std::vector<sched::Work>& work) {
  const std::vector<sched::Work> before = std::exchange(work, {});
  for (const std::size_t index : indices)
    work.push_back({static_cast<std::uint32_t>(work.size()), index < before.size() ? before[index].last_ns : 0});
}

}  // namespace

Scheduler::Scheduler(std::vector<Gpu> devices, sched::SliceTree tree, const DaemonOptions& options, bool time_sliced)
    : devices_(std::move(devices)), tree_(std::move(tree)), options_(options), time_sliced_(time_sliced) {
  for (const Gpu& gpu : devices_) {
    grants_.emplace_back(gpu.sms);
    isolated_.emplace_back(gpu.sms);
    sms_.push_back(grants_.back().sms());
  }
  nodes_on_.resize(grants_.size());
  contexts_.resize(grants_.size());
  queues_.resize(grants_.size());
  quotas_.resize(grants_.size());
  work_.resize(grants_.size());
  set_tree(tree_, 0);
}

sched::SliceTree Scheduler::set_all(sched::SliceTree tree, const DaemonOptions& options, bool time_sliced,
                                    std::uint64_t now_ns) {
  charge_turns(now_ns);
  sched::SliceTree tree_before = std::exchange(tree_, std::move(tree));
  const sched::Slices& slices_before = tree_before.slices();
  const std::vector<std::size_t> indices = indices_before(slices_before, tree_.slices());
  options_ = options;
  time_sliced_ = time_sliced;
  effective_ = tree_.effective();
  renew_targets();
  if (isolate_by_record()) effective_ = tree_.effective();
  nodes_ = tree_.nodes(effective_);
  on_.clear();
  if (sched::differ_by_gpu(tree_.slices()))
    for (const Gpu& gpu : devices_) on_.emplace_back(tree_.on(size_of(gpu)));
  renew_quotas(now_ns);
  kept_on_.clear();
  for (std::size_t device = 0; device < devices_.size(); ++device)
    kept_on_.push_back(sched::kept_on(effective_on(device), devices_[device].memory_bytes));
  for (std::size_t device = 0; device < nodes_on_.size(); ++device) {
    std::vector<sched::NodeInput>& nodes = nodes_on_[device];
    const std::vector<sched::NodeInput> before = std::exchange(nodes, fixed_nodes(device));
    keep_accounts(indices, before, nodes);
    sched::fit_reserves(nodes, sched::CapSM{sms_[device]});
    keep_for_targets(device, 0, nodes);
    throttle(device, nodes);
    for (auto& [mps, context] : contexts_[device]) {
      const std::vector<sched::NodeInput> was = std::exchange(context.nodes, {});
      context.nodes = nodes_of_context(device, top_of(mps));
      keep_accounts(indices, was, context.nodes);
    }
  }
  for (std::vector<sched::Work>& work : work_) keep_work(indices, work);
  keep_pressure(indices, pressure_);
  const auto exists = [this](const std::string& slice) { return tree_.find(slice) != nullptr; };
  latencies_.keep(exists);
  isolation_record_.keep(exists);
  std::erase_if(same_since_, [&](const auto& known) { return !exists(known.first); });
  for (const auto& [path, slice] : tree_.slices()) {
    const auto above = same_since_.find(sched::parent_path(path));
    const auto was = slices_before.find(path);
    const bool same = was != slices_before.end() && sched::same_but_target(was->second, slice);
    if (!same || (above != same_since_.end() && above->second == now_ns)) same_since_[path] = now_ns;
  }
  decide_anew(now_ns);
  return tree_before;
}

Client& Scheduler::add(Client client, bool time_sliced, std::uint64_t now_ns) {
  Client& added = clients_.emplace_back(std::move(client));
  note_start(added);
  note_others(added.slice(), now_ns);
  time_sliced_ = time_sliced;
  decide_anew(now_ns);
  return added;
}

Client& Scheduler::replace(const std::vector<Client*>& stand_ins, Client client, bool time_sliced,
                           std::uint64_t now_ns) {
  charge_turns(now_ns);
  for (Client* stand_in : stand_ins)
    for (auto& queues : queues_)
      for (auto& [path, queue] : queues) queue.forget(*stand_in, now_ns);
  if (!stand_ins.empty()) meter_work(now_ns, true);
  for (Client* stand_in : stand_ins) {
    collect(*stand_in);
    forget_client(*stand_in);
  }
  std::erase_if(clients_, [&](const Client& other) { return std::ranges::find(stand_ins, &other) != stand_ins.end(); });
  return add(std::move(client), time_sliced, now_ns);
}

Client Scheduler::remove(Client& client, std::uint64_t now_ns) {
  time_slices_worked_ = time_slices_work();
  charge_turns(now_ns);
  learn(now_ns);
  read_usage(now_ns);
  read_latencies(client, now_ns, true);
  mark_active(now_ns);  // its slice's reserve is held as if it were there
  if (knowledge_.wants_names(client.identity().uid)) take_names(client);
  for (auto& queues : queues_)
    for (auto& [path, queue] : queues) queue.forget(client, now_ns);
  meter_work(now_ns, true);
  settle(client);
  const auto found =
      std::find_if(clients_.begin(), clients_.end(), [&](const Client& other) { return &other == &client; });
  forget_client(client);
  note_others(client.slice(), now_ns);
  Client removed = std::move(*found);
  clients_.erase(found);
  decide_anew(now_ns);
  return removed;
}

void Scheduler::move(const std::vector<Client*>& clients, const std::string& slice, std::uint64_t now_ns) {
  charge_turns(now_ns);
  learn(now_ns);
  read_usage(now_ns);
  for (Client* client : clients) read_latencies(*client, now_ns, true);
  meter_work(now_ns, true);
  mark_active(now_ns);
  for (Client* client : clients) {
    for (auto& queues : queues_)
      for (auto& [path, queue] : queues) queue.forget(*client, now_ns);
    settle(*client);
    forget_client(*client);
    note_others(client->slice(), now_ns);
    client->move_to(slice);
    note_others(slice, now_ns);
    note_start(*client);
  }
  decide_anew(now_ns);
}

bool Scheduler::is_seen(std::size_t slice, std::size_t device) const {
  return on_.empty() || on_[device].effective[slice].seen;
}

std::optional<std::uint32_t> Scheduler::mps_hundredths(std::size_t slice) const {
  if (effective_[slice].ruler >= 0 || effective_[slice].max.count == 0) return std::nullopt;
  if (!sched::has_reserve(nodes_, slice)) return std::nullopt;
  std::optional<std::uint32_t> greatest;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (!is_seen(slice, i)) continue;
    const sched::CapSM device{devices_[i].sms};
    // A program keeps it to its end. So what is kept for a target, which comes and goes, does not count.
    std::vector<sched::NodeInput> nodes = fixed_nodes(i);
    sched::fit_reserves(nodes, device);
    const auto hundredths = sched::hundredths_for(sched::most_ever(nodes, device)[slice], device);
    if (!hundredths) return std::nullopt;
    greatest = std::max(greatest, hundredths);
  }
  return greatest;
}

bool Scheduler::would_need_form(std::size_t slice, std::optional<std::uint32_t> hundredths, bool time_sliced) const {
  if (effective_[slice].ruler >= 0 || recorder_.wanted()) return true;
  for (std::size_t device = 0; device < grants_.size(); ++device) {
    if (!is_seen(slice, device)) continue;
    sched::CappedClient comes{.node = static_cast<std::uint32_t>(slice)};
    if (hundredths) comes.cap = sched::sms_of_hundredths(*hundredths, sched::CapSM{devices_[device].sms});
    const DeviceConditions where{.time_sliced = time_sliced && devices_[device].needs_mps(), .options = &options_};
    if (grants_[device].would_be_in_force(nodes_on_[device], comes, where) != InForce::nothing) return true;
  }
  return false;
}

void Scheduler::set_hint(Client& client, std::int32_t priority, std::uint64_t now_ns) {
  client.hint = priority;
  decide_anew(now_ns);
}

void Scheduler::charge_turns(std::uint64_t now_ns) {
  for (std::size_t device = 0; device < grants_.size(); ++device) {
    grants_[device].charge(nodes_on_[device], now_ns);
    for (auto& [mps, context] : contexts_[device]) context.grants.charge(context.nodes, now_ns);
  }
}

void Scheduler::decide_anew(std::uint64_t now_ns) {
  charge_turns(now_ns);
  for (Client& client : clients_) client.go_by(options_);
  gather_members();
  rebuild_queues(now_ns);
  read_usage(now_ns);
  mark_active(now_ns);
  update_queues(now_ns);
  decide(now_ns);
  swap_clients(now_ns);
}

void Scheduler::fault(Client& client, std::size_t slot, std::uint64_t now_ns) {
  learn(now_ns);
  read_usage(now_ns);
  client.fault(slot);
  mark_active(now_ns);
  update_queues(now_ns);
  decide(now_ns);
}

std::int32_t Scheduler::priority_of(const Client& client) const {
  const std::int32_t allowed = effective_[client.node].priority;
  return std::min(client.hint.value_or(allowed), allowed);
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

/// True if a demand changed.
bool Scheduler::read_usage(std::uint64_t now_ns) {
  bool changed = false;
  for (Client& client : clients_) {
    changed |= client.read_usage(sms_, now_ns);
    read_latencies(client, now_ns, false);
  }
  meter_work(now_ns, false);
  return changed;
}

void Scheduler::read_latencies(Client& client, std::uint64_t now_ns, bool at_once) {
  client.read_latencies(now_ns, at_once, [&](int device, const ClientLatency::More& more) {
    latencies_.add(client.slice(), device, more, now_ns);
    if (more.warm && !controls_[static_cast<std::size_t>(device)].entries().empty())
      fresh_[{&client, device}] += more.histogram;
  });
}

/// True if a client began or ceased to launch often where that decides about time slices.
bool Scheduler::mark_often() {
  const bool apart = std::ranges::any_of(clients_, [](const Client& client) { return client.context.has_value(); });
  if ((!time_sliced_ && !apart) || !options_.time_slices) return false;
  bool changed = false;
  for (Client& client : clients_)
    for (Client::Slot& slot : client.slots()) {
      const bool often = launches_often(slot.rate.per_s(), slot.often);
      changed |= std::exchange(slot.often, often) != often;
    }
  return changed;
}

bool Scheduler::update(std::uint64_t now_ns) {
  learn(now_ns);
  bool changed = read_usage(now_ns);
  if (step_latency(now_ns)) {
    set_tree(tree_, now_ns);
    return true;
  }
  if (step_quotas(now_ns)) {
    set_tree(tree_, now_ns);
    return true;
  }
  if (mark_often()) {
    decide_anew(now_ns);
    return true;
  }
  const std::size_t held = held_for_nobody();
  changed |= mark_active(now_ns);
  if (held_for_nobody() != held) {
    decide_anew(now_ns);
    return true;
  }
  changed |= update_queues(now_ns);
  for (std::size_t device = 0; device < grants_.size(); ++device)
    each_with_nodes(device, [&](DeviceGrants& grants, std::vector<sched::NodeInput>& nodes) {
      if (&grants != &isolated_[device]) changed |= grants.end_turn(nodes, options_.evict_deadline, now_ns);
    });
  if (changed)
    decide(now_ns);
  else
    write(now_ns);
  return changed;
}

void Scheduler::decide(std::uint64_t now_ns) {
  charge_turns(now_ns);
  for (std::size_t device = 0; device < grants_.size(); ++device)
    each_with_nodes(
        device, [&](DeviceGrants& grants, std::vector<sched::NodeInput>& nodes) { grants.decide(allocator_, nodes); });
  write(now_ns);
}

void Scheduler::write(std::uint64_t now_ns) {
  bool more = false;
  each_grants([&](DeviceGrants& grants) { more |= grants.plan(options_.evict_deadline, now_ns); });
  commit(more, now_ns);
  note_pressure(now_ns);
}

/// Who takes turns with others on the whole GPU has all of it in its turns, and waits unseen.
void Scheduler::note_pressure(std::uint64_t now_ns) {
  waits_.assign(nodes_.size(), false);
  runs_.assign(nodes_.size(), false);
  for (const Client& client : clients_) {
    bool works = false, waits = false, has_any = false;
    for (const Client::Slot& slot : client.slots()) {
      if (slot.device < 0 || slot.demand == 0) continue;
      const std::uint32_t has =
          slot.terms.in_force == InForce::nothing ? slot.demand : std::max(slot.written, slot.terms.common_sms);
      works = true;
      waits |= has < slot.demand;
      has_any |= has > 0;
    }
    if (!works || client.stands_in) continue;
    sched::each_up_to_root(nodes_, client.node, [&](std::size_t n) {
      waits_[n] = waits_[n] || waits;
      runs_[n] = runs_[n] || has_any;
    });
  }
  for (std::size_t n = 0; n < pressure_.size(); ++n)
    pressure_[n].note(waits_[n], waits_[n] && !runs_[n], instant(now_ns));
}

/// What a client may use is recorded before it can use it.
void Scheduler::commit(bool more, std::uint64_t now_ns) {
  if (more && before_growth_ && !record(now_ns)) each_grants([](DeviceGrants& grants) { grants.keep_to_record(); });
  each_grants([now_ns](DeviceGrants& grants) { grants.write(now_ns); });
}

bool Scheduler::record(std::uint64_t now_ns) {
  const bool recorded = !before_growth_ || before_growth_(now_ns);
  for (Client& client : clients_)
    for (Client::Slot& slot : client.slots())
      recorded ? slot.recorded = slot.to_record : slot.to_record = slot.recorded;
  return recorded;
}

std::vector<Client*> Scheduler::check_deadlines(std::uint64_t now_ns) {
  std::vector<Client*> found;
  for (Client& client : clients_) {
    bool disobeys = false;
    for (std::size_t slot = 0; slot < client.slots().size(); ++slot)
      disobeys |= client.check_deadline(slot, options_.evict_deadline, now_ns);
    if (disobeys) found.push_back(&client);
  }
  return found;
}

void Scheduler::storm(Random& random, std::uint64_t now_ns) {
  bool more = false;
  each_grants([&](DeviceGrants& grants) { more |= grants.plan_storm(random, now_ns); });
  commit(more, now_ns);
}

bool Scheduler::busy() const {
  return std::any_of(clients_.begin(), clients_.end(),
                     [](const Client& client) { return client.busy() && !client.silent(); });
}

bool Scheduler::waiting() const {
  const auto waits = [](const auto& entry) { return entry.second.grants.waiting(); };
  return std::ranges::any_of(grants_, &DeviceGrants::waiting) ||
         std::ranges::any_of(contexts_, [&](const auto& contexts) { return std::ranges::any_of(contexts, waits); });
}

std::size_t Scheduler::clients_in(std::string_view slice, bool stand_ins) const {
  return static_cast<std::size_t>(std::count_if(clients_.begin(), clients_.end(), [&](const Client& client) {
    return client.slice() == slice && (stand_ins || !client.stands_in);
  }));
}

std::vector<Scheduler::SliceUse> Scheduler::slice_use() const {
  std::vector<SliceUse> use(nodes_.size());
  std::vector<bool> isolated(nodes_.size());  // it, or a slice below it, has an isolated client
  for (const Client& client : clients_) {
    ++use[client.node].clients;
    if (is_apart(client)) sched::each_up_to_root(nodes_, client.node, [&](std::size_t n) { isolated[n] = true; });
  }
  for (std::size_t device = 0; device < grants_.size(); ++device) {
    const std::vector<SliceUse> here = slice_use_on(device, isolated);
    const std::vector<std::uint64_t> held = memory_held(device);
    for (std::size_t i = 0; i < use.size(); ++i) {
      use[i].granted = std::max(use[i].granted, here[i].granted);
      use[i].demand = std::max(use[i].demand, here[i].demand);
      use[i].on.push_back({here[i].granted, held[i]});
    }
  }
  return use;
}

/// Of one device, without `clients`.
std::vector<Scheduler::SliceUse> Scheduler::slice_use_on(std::size_t device, const std::vector<bool>& isolated) const {
  std::vector<SliceUse> use(nodes_.size());
  const auto add = [&](const DeviceGrants& grants, bool all) {
    for (std::size_t i = 0; i < use.size(); ++i) {
      if (!all && !isolated[i]) continue;
      const sched::NodeDecision& node = grants.division().nodes[i];
      use[i].granted = std::max(use[i].granted, std::min(node.given + node.headroom, nodes_[i].max));
      use[i].demand = std::max(use[i].demand, node.demand);
    }
  };
  add(grants_[device], true);
  add(isolated_[device], false);
  for (const auto& [mps, context] : contexts_[device]) add(context.grants, false);
  // Nothing is asked for slices that have no SMs, and for programs for which nothing is in force.
  std::vector<sched::CapSM> wanted(nodes_.size());
  each_member(device, [&](const DeviceGrants::Member& member) {
    const Client::Slot& slot = member.client->slots()[member.slot];
    sched::each_up_to_root(nodes_, member.client->node, [&](std::size_t n) {
      if (slot.terms.in_force == InForce::nothing || nodes_on_[device][n].max == sched::CapSM{})
        wanted[n] += sched::CapSM{slot.demand};
    });
  });
  for (std::size_t i = 0; i < use.size(); ++i)
    use[i].demand = std::max(use[i].demand, std::min(wanted[i], sched::CapSM{sms_[device]}));
  // The latter use what those leave for which something is.
  std::vector<bool> free(nodes_.size());
  bool any_limited = false;
  sched::CapSM left{sms_[device]};
  for (const DeviceGrants::Member& member : grants_[device].members()) {
    const Client::Slot& slot = member.client->slots()[member.slot];
    if (slot.terms.in_force == InForce::nothing)
      sched::each_up_to_root(nodes_, member.client->node, [&](std::size_t n) { free[n] = true; });
    else
      any_limited = true, left -= std::min(left, sched::CapSM{slot.decided});
  }
  for (std::size_t i = 0; i < use.size(); ++i)
    if (any_limited && free[i])
      use[i].granted = std::max(use[i].granted, std::min({use[i].granted + left, use[i].demand, nodes_[i].max}));
  return use;
}

}  // namespace gpuctl::daemon
