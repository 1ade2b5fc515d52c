// Policies for jobs in the tree: which clients take turns with each other, and what their launches teach.
#include <algorithm>
#include <map>
#include <utility>

#include "gpuctld/clock.h"
#include "gpuctld/jobs/fairness_reports.h"
#include "gpuctld/scheduler/scheduler.h"

namespace gpuctl::daemon {

namespace {

/// How often a client's kernels are looked through for names that are wanted.
constexpr std::uint64_t kNamesEveryNs = 1'000'000'000;
/// Launches that are learnt from, of all programs of a user: they take about a twentieth of a core.
constexpr TokenBucket::Rate kLearning{.per_second = 30'000, .burst = 10'000};

/// The client takes turns with no other.
void release(Client& client, std::size_t index, std::uint32_t wanted_jobs) {
  Client::Slot& slot = client.slots()[index];
  slot.queue = nullptr;
  slot.job = {};
  slot.admitted = ipc::kUnlimited;
  slot.spread = 0;
  slot.wanted_jobs = wanted_jobs;
}

/// The clients on a device that one slice rules.
struct Ruled {
  std::vector<JobQueue::Member> members;
  std::map<std::int32_t, ipc::PriorityBand> levels;  ///< by priority: of one of the members that have it
  bool in_force = false;                             ///< something other than the policy is in force for one of them
  bool by_turns = false;                             ///< one of them is never on the device together with others

  void add(const JobQueue::Member& member, ipc::PriorityBand band, bool other_in_force) {
    members.push_back(member);
    levels.emplace(member.priority, band);
    in_force |= other_in_force;
  }

  /// Whether the GPU's own priorities do what the policy asks for when the programs run on it together. Then no kernel
  /// has to give SMs back: blocks of the job that comes first get in between those of the others.
  bool left_to_gpu(const sched::JobPolicy& policy) const {
    if (levels.size() != members.size() || in_force) return false;
    std::uint32_t free_from = 0;  // by the levels of a GPU that has ipc::kBandsApart
    for (const auto& [priority, band] : levels) {
      if (band.rank * ipc::kBandsApart / band.count < free_from) return false;
      free_from = (band.rank + 1) * ipc::kBandsApart / band.count;
    }
    return policy.priority_decides();
  }
};

}  // namespace

void Scheduler::rebuild_queues(std::uint64_t now_ns) {
  const std::vector<ipc::PriorityBand> bands = this->bands();
  std::map<const Client*, ipc::PriorityBand> band_of;
  for (auto band = bands.begin(); const Client& client : clients_) band_of[&client] = *band++;
  const std::uint32_t unruled = recorder_.wanted() ? ipc::kReportJobs : ipc::kNoJobs;

  for (std::size_t device = 0; device < grants_.size(); ++device) {
    std::map<std::int32_t, Ruled> ruled;  // by index of the slice that rules
    each_with_nodes(device, [&](DeviceGrants& grants, std::vector<sched::NodeInput>& nodes) {
      const std::span<const DeviceGrants::Member> there = grants.members();
      const std::vector<bool> in_force = grants.in_force_without_jobs(nodes);
      for (std::size_t i = 0; i < there.size(); ++i) {
        Client& client = *there[i].client;
        const sched::Effective& own = effective_[client.node];
        // A suspended one runs nothing, so it takes no turn either.
        const bool suspended = nodes[client.node].max == sched::CapSM{};
        if (own.ruler < 0 || suspended) {
          if (JobQueue* const queue = client.slots()[there[i].slot].queue; queue != nullptr && suspended)
            queue->forget(client, now_ns);
          release(client, there[i].slot, unruled);
          continue;
        }
        const std::int32_t priority = std::min(client.hint.value_or(own.turn_priority), own.turn_priority);
        Ruled& queue = ruled[own.ruler];
        queue.add({&client, there[i].slot, priority}, band_of.at(&client), in_force[i]);
        queue.by_turns |= !share_context(*queue.members.front().client, client, device);
      }
    });
    std::map<std::string, JobQueue> before = std::exchange(queues_[device], {});
    std::int32_t index = -1;
    for (const auto& [path, slice] : tree_.slices()) {
      const sched::Effective& own = effective_[static_cast<std::size_t>(++index)];
      if (own.ruler != index) continue;
      const std::string& policy = slice.job_policy;
      Ruled& queue = ruled[index];
      if (!queue.by_turns && queue.left_to_gpu(*sched::make_job_policy(policy).value())) {
        for (const JobQueue::Member& member : queue.members) release(*member.client, member.slot, unruled);
        continue;
      }
      const sched::CapSM most = nodes_on_[device][static_cast<std::size_t>(index)].max;
      const sched::CapSM capacity = std::max(std::min(most, sched::CapSM{sms_[device]}), sched::CapSM{1});
      queues_[device].insert(before.extract(path));
      const auto [found, added] = queues_[device].try_emplace(path, policy, capacity, sms_[device], knowledge_, jobs_);
      found->second.renew(policy, capacity, std::move(queue.members), nodes_, now_ns);
    }
  }
}

/// A queue divides what its slice would be given, in the context of its programs, if all of the queue's programs had
/// what they ask for. The root has all, and so has an isolated slice.
bool Scheduler::update_queues(std::uint64_t now_ns) {
  bool changed = false;
  for (std::size_t device = 0; device < grants_.size(); ++device) {
    std::map<std::string, JobQueue>& queues = queues_[device];
    if (!queues.empty() && !queues.contains("/"))
      each_with_nodes(device, [&](DeviceGrants& grants, std::vector<sched::NodeInput>& nodes) {
        if (grants.time_sliced() || grants.members().empty()) return;
        const auto& context = grants.members().front().client->context;
        const auto is_here = [&](const JobQueue::Member& member) { return member.client->context == context; };
        const auto parts = grants.parts_without_jobs(allocator_, nodes);
        auto part = parts.begin();
        for (const auto& [path, slice] : tree_.slices()) {
          const sched::NodeDecision& node = *part++;
          const auto queue = queues.find(path);
          if (queue != queues.end() && std::ranges::any_of(queue->second.members(), is_here))
            queue->second.set_capacity(std::max(node.given + node.headroom, sched::CapSM{1}));
        }
      });
    for (auto& [path, queue] : queues) changed |= queue.update(options_.evict_deadline, now_ns);
  }
  return changed;
}

std::uint64_t Scheduler::again_ns() const {
  std::uint64_t again = reserve_ends_ns_;
  for (const auto& queues : queues_)
    for (const auto& [path, queue] : queues) again = std::min(again, queue.again_ns());
  return again;
}

/// Learns from the launches that the client reported, within its user's budget.
void Scheduler::learn_from(Client& client, std::uint64_t now_ns) {
  const std::uint32_t uid = client.identity().uid;
  TokenBucket& budget = learning_.try_emplace(uid, kLearning).first->second;
  if (budget.wait(now_ns).count() > 0) return;  // its clients drop what they cannot report
  records_.clear();
  client.take_records(records_);
  budget.charge(static_cast<double>(records_.size()), now_ns);
  for (const ipc::Record& record : records_) {
    const std::size_t index = (record.evictions & ~(ipc::kWholeDevice | ipc::kOriginalForm)) >> ipc::kRecordDeviceShift;
    if (index >= client.slots().size() || client.slots()[index].device < 0) continue;
    const std::uint32_t sms = sms_[static_cast<std::size_t>(client.slots()[index].device)];
    const bool original = (record.evictions & ipc::kOriginalForm) != 0;          // one of several, perhaps
    const auto held = original ? std::nullopt : held_by(client, index, record);  // it says its SMs itself
    const sched::Time alone = knowledge_.learn(uid, record, sms, held);
    note_launch(fairness_, client, index, record, alone, now_ns);
    if (recorder_.wanted() && alone > sched::Time{0}) this->record(client, index, record, alone, held);
  }
}

void Scheduler::learn(std::uint64_t now_ns) {
  std::erase_if(learning_, [now_ns](const auto& user) { return user.second.full(now_ns); });
  for (Client& client : clients_) {
    if (client.has_records()) learn_from(client, now_ns);
    const std::uint32_t uid = client.identity().uid;
    // Some hashes may never get a name, so it is not tried at each call.
    if (!knowledge_.wants_names(uid) || now_ns < client.names_told_ns + kNamesEveryNs) continue;
    client.names_told_ns = now_ns;
    take_names(client);
  }
}

void Scheduler::take_names(const Client& client) {
  for (const ipc::Kernel& kernel : client.kernels()) knowledge_.name(client.identity().uid, kernel.module, kernel.name);
}

/// The SMs that a launch had while it ran. Empty if its time does not tell how it runs with that many: programs took
/// turns, or the client ran another launch beside it.
std::optional<GrantHistory::Held> Scheduler::held_by(Client& client, std::size_t index,
                                                     const ipc::Record& launch) const {
  Client::Slot& slot = client.slots()[index];
  const std::uint64_t before = std::exchange(slot.last_done_ns, std::max(slot.last_done_ns, launch.done_ns));
  if (takes_turns(client, static_cast<std::size_t>(slot.device)) || launch.done_ns <= launch.start_ns)
    return std::nullopt;
  const std::uint64_t ran = launch.done_ns - launch.start_ns;
  const std::optional<ipc::Head> head = client.head(index, UINT64_MAX);
  const bool older_runs = head && head->issued_ns < launch.issued_ns;
  if (older_runs || before > launch.start_ns + ran / 10) return std::nullopt;
  const std::uint32_t usable = (launch.total + launch.per_sm - 1) / launch.per_sm;
  return slot.history.held(launch.start_ns, launch.done_ns,
                           std::min(usable, sms_[static_cast<std::size_t>(slot.device)]));
}

void Scheduler::record(const Client& client, std::size_t slot, const ipc::Record& launch, sched::Time alone,
                       const std::optional<GrantHistory::Held>& held) {
  const auto bounded = [](std::uint64_t ns) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(ns, INT64_MAX));
  };
  const auto device = static_cast<std::size_t>(client.slots()[slot].device);
  const std::uint32_t number = launch.evictions & 0xffff;  // of evictions, or of SMs
  const bool original = (launch.evictions & ipc::kOriginalForm) != 0;
  const std::uint32_t evictions = original ? 0 : number;
  auto [name, module] = knowledge_.name_of(client.identity().uid, launch.kernel);
  double sms = held ? held->capsm : 0;
  std::uint64_t ran_ns = held ? held->ns : 0;
  if (original && !takes_turns(client, device)) {
    sms = number == 0 ? sms_[device] : number;
    ran_ns = launch.done_ns - std::min(launch.start_ns, launch.done_ns);
  }
  recorder_.add({client.identity().uid,
                 {.pid = client.identity().pid,
                  .slice = client.slice(),
                  .kernel = std::move(name),
                  .device = devices_[device].index,
                  .priority = effective_[client.node].priority,
                  .weight = nodes_[client.node].weight,
                  .issued_ns = bounded(launch.issued_ns),
                  .done_ns = bounded(launch.done_ns),
                  .alone_us = static_cast<double>(alone.count()) / 1000,
                  .block_task_us = launch.task_ns / 1000.0,
                  .capsm = std::clamp((launch.total + launch.per_sm - 1) / launch.per_sm, 1u, sms_[device]),
                  .evictions = evictions,
                  .evict_us = evictions == 0 ? 0 : static_cast<double>(launch.evict_ns) / evictions / 1000,
                  .module = std::move(module),
                  .key = KernelKnowledge::key_of(launch.kernel),
                  .blocks = launch.total,
                  .threads = launch.threads,
                  .shared_bytes = launch.shared,
                  .input_bytes = 1024 * std::int64_t{launch.input_kib},
                  .sms = sms,
                  .ran_us = static_cast<double>(bounded(ran_ns)) / 1000,
                  .original = original}});
}

std::map<std::string, sched::FairnessFigures> Scheduler::fairness(std::uint64_t now_ns) {
  learn(now_ns);
  return fairness_.figures(instant(now_ns));
}

Recorder::Part Scheduler::read_records(const void* reader, std::uint64_t now_ns, bool original) {
  learn(now_ns);
  const bool wanted = recorder_.wanted();
  Recorder::Part part = recorder_.read(reader, original);
  if (!wanted) decide_anew(now_ns);
  return part;
}

void Scheduler::forget_reader(const void* reader, std::uint64_t now_ns) {
  const bool wanted = recorder_.wanted();
  recorder_.forget(reader);
  if (wanted && !recorder_.wanted()) decide_anew(now_ns);
}

}  // namespace gpuctl::daemon
