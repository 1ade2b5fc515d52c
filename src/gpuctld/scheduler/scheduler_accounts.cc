// What programs use of GPUs, for the accounts.
#include <algorithm>
#include <utility>

#include "gpuctld/scheduler/scheduler.h"

namespace gpuctl::daemon {

namespace {

/// The accounts are taken as often while programs are there.
constexpr std::uint64_t kStretchNs = 9'000'000'000;

/// Where nothing is in force the page's demand is what was launched lately, and goes on for a while: a burst must go on
/// too.
bool works(const Client& client, std::size_t index) {
  const Client::Slot& slot = client.slots()[index];
  if (slot.demand == 0 || client.stands_in) return false;
  return slot.terms.mode != ipc::Mode::free || client.in_burst(index);
}

/// The SMs that it has: those that it may have, as far as it can fill them. Workers say how many they hold, which is
/// none while they wait for SMs that others have not left. Towards the end of a kernel they can fill fewer and still
/// hold them. Launches in original form that have begun go on where they are when nothing is granted any more; behind
/// workers in the same stream they would seem to. Where nothing divides the SMs a program has what it can fill.
std::uint32_t has(const Client::Slot& slot, std::uint32_t device_sms) {
  const bool divided = slot.terms.mode != ipc::Mode::free;
  // Programs that have SMs in common are granted a part of them each, as many as that is while others want them.
  const std::uint32_t granted = slot.written > 0 ? slot.written : slot.terms.common_sms;
  const std::uint32_t may_have = slot.most_of(divided ? granted : device_sms);
  if (slot.demand == 0) return may_have;
  const std::uint32_t fills = std::min(may_have, slot.demand);
  if (!divided) return fills;
  if (slot.outstanding == 0) return granted > 0 ? fills : std::min(slot.original, slot.most_of(slot.had));
  return slot.holding == 0 ? std::min(slot.original, may_have) : std::max(slot.holding, fills);
}

}  // namespace

/// Programs that are at work on the same SMs at once share what there is. `all`: idle ones are looked at too, whenever
/// that was done last.
void Scheduler::meter_work(std::uint64_t now_ns, bool all) {
  sms_used_.assign(devices_.size(), 0);
  const auto each_slot = [&](auto visit) {
    for (Client& client : clients_)
      for (std::size_t i = 0; i < client.slots().size(); ++i)
        if (client.slots()[i].device >= 0) visit(client, i, static_cast<std::size_t>(client.slots()[i].device));
  };
  each_slot([&](const Client& client, std::size_t i, std::size_t device) {
    if (works(client, i)) sms_used_[device] += has(client.slots()[i], sms_[device]);
  });
  for (auto& quotas : quotas_)
    for (auto& [path, quota] : quotas) quota.rate = 0;
  each_slot([&](Client& client, std::size_t i, std::size_t device) {
    Client::Slot& slot = client.slots()[i];
    const bool at_work = works(client, i);
    if (!all && !at_work && !slot.meter.due(now_ns)) return;
    const std::uint32_t sms = has(slot, sms_[device]);
    const double share = at_work ? std::min(1.0, sms_[device] / std::max(sms_used_[device], 1.0)) : 1.0;
    slot.meter.look(client.counted(i),
                    {.works = at_work,
                     .waits = at_work && sms < slot.demand,
                     .sms = sms * share,
                     .memory = client.memory(i, devices_[device].memory_bytes)},
                    now_ns);
    use_quotas(client, slot, at_work ? sms * share : 0, now_ns);
  });
}

/// What the client used until the latest look is its slice's.
void Scheduler::collect(Client& client) {
  for (Client::Slot& slot : client.slots()) {
    if (slot.device < 0) continue;
    if (const Amounts used = slot.meter.take(); used != Amounts{})
      accounts_[{client.slice(), client.identity().uid, devices_[static_cast<std::size_t>(slot.device)].uuid}] += used;
  }
}

/// So is a burst that goes on, as far as it was seen.
void Scheduler::settle(Client& client) {
  for (std::size_t i = 0; i < client.slots().size(); ++i) client.slots()[i].meter.settle(client.in_burst(i));
  collect(client);
}

Accounts Scheduler::take_accounts(std::uint64_t now_ns) {
  meter_work(now_ns, true);
  for (Client& client : clients_) collect(client);
  if (now_ns > used_now_.began_ns + 2 * kStretchNs) used_now_ = {.began_ns = now_ns, .ended_ns = 0, .used = {}};
  for (const auto& [key, used] : accounts_) used_now_.used[key] += used;
  if (now_ns >= used_now_.began_ns + kStretchNs) {
    used_now_.ended_ns = now_ns;
    used_lately_ = std::exchange(used_now_, {.began_ns = now_ns, .ended_ns = 0, .used = {}});
  }
  return std::exchange(accounts_, {});
}

std::optional<double> Scheduler::isolated_part(std::size_t device, const std::string& path,
                                               std::uint64_t now_ns) const {
  if (clients_.empty()) return 0;
  if (used_lately_.ended_ns == 0 || now_ns > used_lately_.ended_ns + 2 * kStretchNs) return std::nullopt;
  double sm_s = 0;
  for (const auto& [key, used] : used_lately_.used) {
    const std::string top = sched::topmost_isolated(tree_.slices(), key.slice);
    if (key.gpu == devices_[device].uuid && !top.empty() && !sched::in_or_below(path, top) &&
        !sched::in_or_below(key.slice, path))
      sm_s += used.sm_s;
  }
  const double seconds = static_cast<double>(used_lately_.ended_ns - used_lately_.began_ns) / 1e9;
  return std::min(1.0, sm_s / (seconds * devices_[device].sms));
}

sched::Unpromised Scheduler::room_for(std::size_t device, const std::string& path) const {
  const sched::GpuSize gpu = size_of(devices_[device]);
  return sched::room_for(tree_.on(gpu), path, gpu.memory);
}

}  // namespace gpuctl::daemon
