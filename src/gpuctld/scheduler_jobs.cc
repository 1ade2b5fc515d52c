// Policies for jobs in the tree: which clients take turns with whom, and what their launches teach.
#include <algorithm>
#include <utility>

#include "gpuctld/scheduler.h"

namespace gpuctl::daemon {

/// The topmost slice with a policy for jobs on a path rules over all that is in and below it. A job's priority is its
/// client's, but no slice gives more than those above it, up to the one that rules.
void Scheduler::rebuild_queues(std::uint64_t now_ns) {
  struct Ruled {
    std::int32_t by = -1;  ///< index of the slice that rules
    std::int32_t priority = 0;
    sched::CapSM most{};  ///< what it may have at all
  };
  std::vector<Ruled> ruled;
  std::vector<const std::string*> paths;
  std::vector<const sched::Slice*> slices;
  for (const auto& [path, slice] : tree_.slices()) {
    const auto index = static_cast<std::int32_t>(ruled.size());
    const std::int32_t parent = nodes_[ruled.size()].parent;
    Ruled node{.by = -1, .priority = slice.priority, .most = slice.max};
    if (parent >= 0) {
      const Ruled& above = ruled[static_cast<std::size_t>(parent)];
      node.by = above.by;
      node.most = std::min(above.most, slice.max);
      if (above.by >= 0 && above.by != parent) node.priority = std::min(above.priority, slice.priority);
    }
    if (node.by < 0 && !slice.job_policy.empty()) node.by = index;
    ruled.push_back(node);
    paths.push_back(&path);
    slices.push_back(&slice);
  }

  for (std::size_t device = 0; device < boards_.size(); ++device) {
    std::map<std::int32_t, std::vector<JobQueue::Member>> members;
    for (Client& client : clients_) {
      const Ruled& node = ruled[client.node];
      for (std::size_t index = 0; index < client.slots().size(); ++index) {
        Client::Slot& slot = client.slots()[index];
        if (slot.device != static_cast<int>(device)) continue;
        if (node.by >= 0) {
          const std::int32_t priority = std::min(client.hint.value_or(node.priority), node.priority);
          members[node.by].push_back({&client, index, priority, slices[client.node]->weight});
        } else {
          slot.queue = nullptr;
          slot.job = {};
          slot.admitted = ipc::kUnlimited;
          client.write_jobs(index, recorder_.wanted() ? ipc::kTellJobs : ipc::kNoJobs);
        }
      }
    }
    auto& queues = queues_[device];
    for (std::size_t node = 0; node < ruled.size(); ++node) {
      if (ruled[node].by != static_cast<std::int32_t>(node)) continue;
      const std::string& policy = slices[node]->job_policy;
      const sched::CapSM capacity = std::max(std::min(ruled[node].most, sched::CapSM{sms_[device]}), sched::CapSM{1});
      const auto [queue, added] = queues.try_emplace(*paths[node], policy, capacity, sms_[device], knowledge_, jobs_);
      queue->second.renew(policy, capacity, std::move(members[static_cast<std::int32_t>(node)]), now_ns);
    }
    std::erase_if(queues, [&](const auto& entry) {
      const auto at = std::find_if(paths.begin(), paths.end(), [&](const auto* path) { return *path == entry.first; });
      const auto node = static_cast<std::size_t>(at - paths.begin());
      return at == paths.end() || ruled[node].by != static_cast<std::int32_t>(node);
    });
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
      const std::size_t index = (record.evictions & ~ipc::kWholeDevice) >> ipc::kRecordDeviceShift;
      if (index >= client.slots().size() || client.slots()[index].device < 0) continue;
      const std::uint32_t sms = sms_[static_cast<std::size_t>(client.slots()[index].device)];
      const sched::Time alone = knowledge_.learn(record, sms, held_by(client, index, record));
      if (recorder_.wanted() && alone > sched::Time{0}) this->record(client, index, record, alone);
    }
    if (!knowledge_.wants_names()) continue;
    for (const ipc::Kernel& kernel : client.kernels()) knowledge_.name(kernel.module, kernel.name);
  }
}

/// The SMs that a launch had while it ran. Nothing when its time does not say how it runs with so many: programs took
/// turns, or the client ran another one beside it.
std::optional<GrantHistory::Held> Scheduler::held_by(Client& client, std::size_t index,
                                                     const ipc::Record& launch) const {
  Client::Slot& slot = client.slots()[index];
  const std::uint64_t before = std::exchange(slot.last_done_ns, std::max(slot.last_done_ns, launch.done_ns));
  if (boards_[static_cast<std::size_t>(slot.device)].by_turns() || launch.done_ns <= launch.start_ns)
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
                 .device = static_cast<std::int64_t>(device),
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
