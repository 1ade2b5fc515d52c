// Policies for jobs in the tree: which clients take turns with each other, and what their launches teach.
#include <algorithm>
#include <set>
#include <utility>

#include "gpuctld/grants/scheduler.h"

namespace gpuctl::daemon {

namespace {

/// The client takes turns with no other.
void release(Client& client, std::size_t index, std::uint32_t tells) {
  Client::Slot& slot = client.slots()[index];
  slot.queue = nullptr;
  slot.job = {};
  slot.admitted = ipc::kUnlimited;
  client.write_jobs(index, tells);
}

/// The clients on a device that one slice rules.
struct Ruled {
  std::vector<JobQueue::Member> members;
  std::set<std::int32_t> priorities;
  std::set<std::uint32_t> ranks;
  std::uint32_t bands = 1;
  bool obey = false;  ///< something other than the policy is in force for one of them

  void stand(std::int32_t priority, ipc::PriorityBand band, bool obeys) {
    priorities.insert(priority);
    ranks.insert(band.rank);
    bands = band.count;
    obey |= obeys;
  }

  /// Whether the GPU's own priorities do what the policy asks for when the programs run on it together. Then no kernel
  /// has to give SMs back: blocks of the job that comes first get in between those of the others.
  bool left_to_gpu(const std::string& policy) const {
    const bool apart =
        priorities.size() == members.size() && ranks.size() == members.size() && bands <= ipc::kBandsApart;
    return apart && !obey && (*sched::make_job_policy(policy))->priority_decides();
  }
};

}  // namespace

/// The topmost slice with a policy for jobs on a path rules all that is in and below it. A job's priority is its
/// client's, bounded by the slices on its path that are below the ruling slice.
std::vector<Scheduler::Rule> Scheduler::rules() const {
  std::vector<Rule> rules;
  for (const auto& [path, slice] : tree_.slices()) {
    const auto index = static_cast<std::int32_t>(rules.size());
    const std::int32_t parent = nodes_[rules.size()].parent;
    Rule rule{.path = &path, .slice = &slice, .priority = slice.priority, .most = slice.max};
    if (parent >= 0) {
      const Rule& above = rules[static_cast<std::size_t>(parent)];
      rule.by = above.by;
      rule.most = std::min(above.most, slice.max);
      if (above.by >= 0 && above.by != parent) rule.priority = std::min(above.priority, slice.priority);
    }
    if (rule.by < 0 && !slice.job_policy.empty()) rule.by = index;
    rules.push_back(rule);
  }
  return rules;
}

void Scheduler::rebuild_queues(std::uint64_t now_ns) {
  const std::vector<Rule> rules = this->rules();
  const std::vector<ipc::PriorityBand> bands = this->bands();
  std::map<const Client*, ipc::PriorityBand> band_of;
  for (auto band = bands.begin(); const Client& client : clients_) band_of[&client] = *band++;
  const std::uint32_t unruled = recorder_.wanted() ? ipc::kReportJobs : ipc::kNoJobs;

  for (std::size_t device = 0; device < grants_.size(); ++device) {
    const std::span<const DeviceGrants::Member> there = grants_[device].members();
    const std::vector<bool> obeys = grants_[device].obeys_without_jobs(nodes_on_[device]);
    std::map<std::string, Ruled> ruled;  // by path of the slice that rules
    for (std::size_t i = 0; i < there.size(); ++i) {
      Client& client = *there[i].client;
      const Rule& rule = rules[client.node];
      if (rule.by < 0) {
        release(client, there[i].slot, unruled);
        continue;
      }
      const std::int32_t priority = std::min(client.hint.value_or(rule.priority), rule.priority);
      Ruled& queue = ruled[*rules[static_cast<std::size_t>(rule.by)].path];
      queue.members.push_back({&client, there[i].slot, priority, rule.slice->weight});
      queue.stand(priority, band_of.at(&client), obeys[i]);
    }
    std::map<std::string, JobQueue> before = std::exchange(queues_[device], {});
    for (const Rule& rule : rules) {
      if (rule.by < 0 || rules[static_cast<std::size_t>(rule.by)].path != rule.path) continue;
      const std::string& policy = rule.slice->job_policy;
      Ruled& queue = ruled[*rule.path];
      if (!grants_[device].time_sliced() && queue.left_to_gpu(policy)) {
        for (const JobQueue::Member& member : queue.members) release(*member.client, member.slot, unruled);
        continue;
      }
      const sched::CapSM capacity = std::max(std::min(rule.most, sched::CapSM{sms_[device]}), sched::CapSM{1});
      queues_[device].insert(before.extract(*rule.path));
      const auto [found, added] =
          queues_[device].try_emplace(*rule.path, policy, capacity, sms_[device], knowledge_, jobs_);
      found->second.renew(policy, capacity, std::move(queue.members), now_ns);
    }
  }
}

bool Scheduler::take_turns(std::uint64_t now_ns) {
  bool changed = false;
  for (auto& queues : queues_)
    for (auto& [path, queue] : queues) changed |= queue.update(deadline_, now_ns);
  return changed;
}

std::uint64_t Scheduler::again_ns() const {
  std::uint64_t again = reserve_ends_ns_;
  for (const auto& queues : queues_)
    for (const auto& [path, queue] : queues) again = std::min(again, queue.again_ns());
  return again;
}

void Scheduler::learn() {
  for (Client& client : clients_) {
    records_.clear();
    client.take_records(records_);
    for (const ipc::Record& record : records_) {
      const std::size_t index =
          (record.evictions & ~(ipc::kWholeDevice | ipc::kOriginalForm)) >> ipc::kRecordDeviceShift;
      if (index >= client.slots().size() || client.slots()[index].device < 0) continue;
      const std::uint32_t sms = sms_[static_cast<std::size_t>(client.slots()[index].device)];
      if ((record.evictions & ipc::kOriginalForm) != 0) {  // one of several, perhaps; it says its SMs itself
        knowledge_.learn(record, sms);
        continue;
      }
      const sched::Time alone = knowledge_.learn(record, sms, held_by(client, index, record));
      if (recorder_.wanted() && alone > sched::Time{0}) this->record(client, index, record, alone);
    }
    if (!knowledge_.wants_names()) continue;
    for (const ipc::Kernel& kernel : client.kernels()) knowledge_.name(kernel.module, kernel.name);
  }
}

/// The SMs that a launch had while it ran. Empty if its time does not tell how it runs with that many: programs took
/// turns, or the client ran another launch beside it.
std::optional<GrantHistory::Held> Scheduler::held_by(Client& client, std::size_t index,
                                                     const ipc::Record& launch) const {
  Client::Slot& slot = client.slots()[index];
  const std::uint64_t before = std::exchange(slot.last_done_ns, std::max(slot.last_done_ns, launch.done_ns));
  if (grants_[static_cast<std::size_t>(slot.device)].time_sliced() || launch.done_ns <= launch.start_ns)
    return std::nullopt;
  const std::uint64_t ran = launch.done_ns - launch.start_ns;
  const std::optional<ipc::Head> head = client.head(index, UINT64_MAX);
  const bool older_runs = head && head->issued_ns < launch.issued_ns;
  if (older_runs || before > launch.start_ns + ran / 10) return std::nullopt;
  const std::uint32_t usable = (launch.total + launch.per_sm - 1) / launch.per_sm;
  return slot.history.held(launch.start_ns, launch.done_ns,
                           std::min(usable, sms_[static_cast<std::size_t>(slot.device)]));
}

void Scheduler::record(const Client& client, std::size_t slot, const ipc::Record& launch, sched::Time alone) {
  const auto bounded = [](std::uint64_t ns) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(ns, INT64_MAX));
  };
  const auto device = static_cast<std::size_t>(client.slots()[slot].device);
  const std::uint32_t evictions = launch.evictions & 0xffff;
  recorder_.add({.pid = client.identity().pid,
                 .slice = client.slice(),
                 .kernel = knowledge_.name_of(launch.kernel),
                 .device = devices_[device].index,
                 .priority = nodes_[client.node].priority,
                 .weight = nodes_[client.node].weight,
                 .issued_ns = bounded(launch.issued_ns),
                 .done_ns = bounded(launch.done_ns),
                 .alone_us = static_cast<double>(alone.count()) / 1000,
                 .block_task_us = launch.task_ns / 1000.0,
                 .capsm = std::clamp((launch.total + launch.per_sm - 1) / launch.per_sm, 1u, sms_[device]),
                 .evictions = evictions,
                 .evict_us = evictions == 0 ? 0 : static_cast<double>(launch.evict_ns) / evictions / 1000});
}

Recorder::Part Scheduler::read_records(const void* reader, std::uint64_t now_ns) {
  learn();
  const bool wanted = recorder_.wanted();
  Recorder::Part part = recorder_.read(reader);
  if (!wanted) rebuild_queues(now_ns);
  return part;
}

void Scheduler::forget_reader(const void* reader, std::uint64_t now_ns) {
  const bool wanted = recorder_.wanted();
  recorder_.forget(reader);
  if (wanted && !recorder_.wanted()) rebuild_queues(now_ns);
}

}  // namespace gpuctl::daemon
