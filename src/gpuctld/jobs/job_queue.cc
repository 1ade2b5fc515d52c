#include "gpuctld/jobs/job_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gpuctld/clock.h"
#include "sched/predictor/predictor.h"

namespace gpuctl::daemon {

using sched::CapSM;
using sched::JobState;
using sched::Time;

namespace {

/// The launch of a client that has demand but reports none.
constexpr std::uint64_t kUnknownLaunch = UINT64_MAX;
/// A job that was given SMs counts as at work after this time, even if its client does not say that workers are there.
constexpr std::uint64_t kComesWithinNs = 1'000'000;

/// The weights of all jobs together, in round numbers.
constexpr double kWeightOfAll = 1'000'000;

}  // namespace

JobQueue::JobQueue(std::string policy, CapSM capacity, std::uint32_t sms, KernelKnowledge& knowledge,
                   std::uint64_t& next_id)
    : policy_(std::move(policy)),
      sms_(sms),
      knowledge_(knowledge),
      scheduler_(make_policy(), capacity),
      next_id_(next_id) {}

/// The policy that policy_ names, with the learnt curves of kernels. The text was checked.
std::unique_ptr<sched::JobPolicy> JobQueue::make_policy() const {
  sched::PolicyInputs inputs;
  inputs.curves = [&knowledge = knowledge_, sms = sms_](std::uint32_t kernel) { return knowledge.curve(kernel, sms); };
  return std::move(sched::make_job_policy(policy_, std::move(inputs)).value());
}

void JobQueue::renew(const std::string& policy, CapSM capacity, std::vector<Member> members,
                     std::span<const sched::NodeInput> nodes, std::uint64_t now_ns) {
  if (policy != policy_) {
    policy_ = policy;
    scheduler_.set_policy(make_policy(), instant(now_ns));
  }
  scheduler_.set_capacity(capacity);
  members_ = std::move(members);
  nodes_ = nodes;
  anything_new_ = true;
  for (const Member& member : members_) {
    Client::Slot& slot = member.client->slots()[member.slot];
    if (std::exchange(slot.queue, this) != this) slot.job = {};
    scheduler_.set_priority(slot.job.id, member.priority);
  }
  const auto is_latest = [this](const Member& member) { return member.client == latest_; };
  if (std::none_of(members_.begin(), members_.end(), is_latest))
    latest_ = members_.empty() ? nullptr : members_.front().client;
}

void JobQueue::forget(const Client& client, std::uint64_t now_ns) {
  for (const Member& member : members_)
    if (member.client == &client) leave(member.client->slots()[member.slot], instant(now_ns));
  std::erase_if(members_, [&](const Member& member) { return member.client == &client; });
  if (latest_ == &client) latest_ = nullptr;
}

void JobQueue::leave(Client::Slot& slot, Time now) {
  if (slot.job.id != 0) scheduler_.complete(slot.job.id, now);
  slot.job = {};
  anything_new_ = true;
}

bool JobQueue::update(std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  const Time now = instant(now_ns);
  new_.clear();
  for (const Member& member : members_) look_at(member, now_ns);
  std::stable_sort(new_.begin(), new_.end(), [](const New& a, const New& b) { return a.arrived < b.arrived; });
  for (const New& job : new_) arrive(job);
  for (const Member& member : members_) follow(member, deadline, now_ns);
  if (std::exchange(anything_new_, false) || now >= decide_at_) {
    weigh();
    decide_at_ = scheduler_.decide(now).again;
    if (start_those_at_work(now_ns)) decide_at_ = scheduler_.decide(now).again;
  }
  again_ns_ = decide_at_ == sched::kNever ? UINT64_MAX : static_cast<std::uint64_t>(decide_at_.count());
  for (const Member& member : members_) {
    const Client::Slot& slot = member.client->slots()[member.slot];
    if (scheduler_.state(slot.job.id) == JobState::to_run)
      again_ns_ = std::min(again_ns_, (slot.job.given_ns != 0 ? slot.job.given_ns : now_ns) + kComesWithinNs);
  }
  return admit();
}

/// The weight of a job is the part of the time that it is due beside the other jobs that are there now. So a slice is
/// due its part however many slices, clients and weights there are below it.
void JobQueue::weigh() {
  jobs_in_.assign(nodes_.size(), 0);
  for (const Member& member : members_)
    jobs_in_[member.client->node] += member.client->slots()[member.slot].job.id != 0;
  const std::span<const double> parts = parts_.compute(nodes_, jobs_in_);
  for (const Member& member : members_)
    scheduler_.set_weight(member.client->slots()[member.slot].job.id,
                          static_cast<std::uint32_t>(std::lround(parts[member.client->node] * kWeightOfAll)));
}

/// Finds whether the member's job is over and another one is there.
void JobQueue::look_at(const Member& member, std::uint64_t now_ns) {
  Client::Slot& slot = member.client->slots()[member.slot];
  const std::optional<ipc::Head> head = member.client->head(member.slot, now_ns);
  const std::uint64_t launch = head ? head->launch : slot.demand != 0 ? kUnknownLaunch : 0;
  if (slot.job.launch == launch) return;
  const bool was_idle = slot.job.id == 0;
  leave(slot, instant(now_ns));
  // A launch that waited behind an earlier one of the same client arrives when that one is over.
  if (launch != 0) new_.push_back({&member, head, instant(head && was_idle ? head->issued_ns : now_ns)});
}

void JobQueue::arrive(const New& job) {
  const Member& member = *job.member;
  Client::Slot& slot = member.client->slots()[member.slot];
  const std::uint32_t uid = member.client->identity().uid;
  slot.job = {.id = ++next_id_, .launch = job.head ? job.head->launch : kUnknownLaunch, .inherits = slot.written > 0};
  sched::Arrival arrival{.id = slot.job.id,
                         .owner = reinterpret_cast<std::uintptr_t>(member.client),
                         .kernel = KernelKnowledge::kNoId,
                         .priority = member.priority,
                         .need = scheduler_.capacity(),
                         .predicted = kUnknownDuration,
                         .eviction = kUnknownEviction};
  if (const auto& head = job.head; head && head->original != 0) {
    slot.job.original = true;
    slot.job.known = knowledge_.knows_duration(uid, head->kernel);
    arrival.predicted = knowledge_.predict(uid, *head, sms_);
  } else if (head) {
    arrival.need = CapSM{std::clamp((head->total + head->per_sm - 1) / head->per_sm, 1u, sms_)};
    arrival.kernel = knowledge_.id(uid, head->kernel);
    arrival.predicted = knowledge_.predict(uid, *head, sms_);
    arrival.eviction = knowledge_.eviction(uid, head->kernel);
  }
  if (job.head) slot.job.unclaimed = arrival.predicted;
  scheduler_.arrive(arrival, job.arrived);
  anything_new_ = true;
}

/// Tells the scheduler whether its decisions took hold, and how far the job is.
void JobQueue::follow(const Member& member, std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  Client::Slot& slot = member.client->slots()[member.slot];
  const sched::Job* job = scheduler_.find(slot.job.id);
  if (job == nullptr) return;
  const Time now = instant(now_ns);
  if (slot.written == 0) slot.job.given_ns = 0, slot.job.inherits = false;
  if (job->state == JobState::to_run && at_work(slot, *job, now_ns)) {
    scheduler_.started(job->id, now);
    anything_new_ = true;
  }
  const bool has_left =
      slot.written == 0 && (!slot.held.pending() || member.client->overdue(member.slot, deadline, now_ns));
  if (job->state == JobState::to_evict && has_left) {
    scheduler_.evicted(job->id, now);
    anything_new_ = true;
  }

  if (job->state == JobState::running && slot.job.seen_ns != 0) {
    const std::uint32_t usable = std::min(job->need, scheduler_.capacity()).count;
    const auto elapsed = static_cast<double>((now - instant(slot.job.seen_ns)).count());
    slot.job.ran += Time{std::llround(elapsed * knowledge_.speed(job->kernel, job->granted.count, usable, sms_))};
  }
  slot.job.seen_ns = now_ns;
  // Work of unknown length is expected to go on for as long as it has gone on so far.
  if (slot.job.launch == kUnknownLaunch || !slot.job.known)
    scheduler_.observe(job->id, std::max(kUnknownDuration, slot.job.ran), now);
  if (slot.job.original) {
    // A launch in original form: what is left of its prediction. Once it is late: as long as it has been late so far.
    if (slot.job.known) scheduler_.observe(job->id, std::chrono::abs(job->predicted - slot.job.ran), now);
    return;
  }
  const std::optional<ipc::Head> head = member.client->head(member.slot, now_ns);
  if (!head || head->launch != slot.job.launch || head->claimed <= slot.job.claimed) {
    // Time alone finishes no block-task. A launch whose workers do not progress would seem to be over, and would get
    // even fewer SMs. A claim that is only late should not change all grants, so this waits until nothing would be
    // left.
    if (job->remaining == Time{0} && slot.job.unclaimed > Time{0}) scheduler_.observe(job->id, slot.job.unclaimed, now);
    return;
  }
  slot.job.claimed = head->claimed;
  slot.job.unclaimed = sched::corrected_remaining(job->predicted, slot.job.ran, head->claimed, head->total);
  scheduler_.observe(job->id, slot.job.unclaimed, now);
  // Launches that wait behind this one go on with its grant.
  if (head->claimed < head->total || slot.outstanding > 1) return;
  slot.job.tail = true;
  scheduler_.tail(job->id, now);
  anything_new_ = true;
}

/// A time slice counts from when the job's workers are there, not from when the client is told, because the client must
/// launch them first. A client that had a grant when the launch was issued launched its workers with it.
bool JobQueue::at_work(Client::Slot& slot, const sched::Job& job, std::uint64_t now_ns) const {
  if (slot.written == 0) return false;
  if (slot.job.given_ns == 0) slot.job.given_ns = now_ns;
  if (slot.job.inherits || slot.job.launch == kUnknownLaunch || slot.job.original ||
      now_ns - slot.job.given_ns >= kComesWithinNs)
    return true;
  return 2 * slot.holding >= std::min({slot.written, job.need.count, slot.demand});
}

/// Reports jobs as started that the latest decision allowed to run and that are at work already. True if there is one.
bool JobQueue::start_those_at_work(std::uint64_t now_ns) {
  bool any = false;
  for (const Member& member : members_) {
    Client::Slot& slot = member.client->slots()[member.slot];
    const sched::Job* job = scheduler_.find(slot.job.id);
    if (job == nullptr || job->state != JobState::to_run || !at_work(slot, *job, now_ns)) continue;
    scheduler_.started(job->id, instant(now_ns));
    any = true;
  }
  return any;
}

bool JobQueue::admit() {
  bool changed = false;
  const bool idle = scheduler_.jobs().empty();
  const bool alone = scheduler_.jobs().size() == 1;
  for (const Member& member : members_) {
    const sched::Job* job = scheduler_.find(member.client->slots()[member.slot].job.id);
    if (job != nullptr && job->granted.count > 0) latest_ = member.client;
  }
  const sched::Job* longest = nullptr;
  CapSM left = scheduler_.capacity();
  for (const sched::Job& job : scheduler_.jobs()) {
    left -= std::min(left, job.granted);
    if (job.granted.count > 0 && job.granted < job.need && (longest == nullptr || job.remaining > longest->remaining))
      longest = &job;
  }
  for (const Member& member : members_) {
    Client::Slot& slot = member.client->slots()[member.slot];
    const sched::Job* job = scheduler_.find(slot.job.id);
    CapSM granted = job != nullptr ? job->granted : CapSM{};
    // SMs that the policy leaves free may be of no use to any job. The job with the longest remaining time tries them.
    if (job != nullptr && job == longest) granted = std::min(granted + left, job->need);
    // A client alone gets all SMs, whatever it can use: no other wants them, and so it is learnt what it can use.
    const bool all =
        granted >= scheduler_.capacity() || (alone && job != nullptr) || (idle && member.client == latest_);
    const std::uint32_t admitted = all ? ipc::kUnlimited : granted.count;
    const std::uint32_t spread = !all && job != nullptr && granted > job->need ? granted.count : 0;
    changed |= std::exchange(slot.admitted, admitted) != admitted;
    changed |= std::exchange(slot.spread, spread) != spread;
    slot.wanted_jobs = scheduler_.jobs().size() > 1 ? ipc::kReportEachJob : ipc::kReportJobs;
  }
  return changed;
}

std::string_view JobQueue::state(const Client::Slot& slot) const {
  const sched::Job* job = scheduler_.find(slot.job.id);
  if (job == nullptr) return "idle";
  if (job->state == JobState::ready) return job->evictions > 0 ? "evicted" : "waiting";
  return sched::to_string(job->state);
}

std::string_view job_state(const Client::Slot& slot) {
  return slot.queue == nullptr ? "" : slot.queue->state(slot);
}

std::string_view job_state(const Client& client) {
  std::string_view found;
  for (const Client::Slot& slot : client.slots())
    if (const std::string_view state = job_state(slot); slot.device >= 0 && !state.empty()) found = state;
  return found;
}

}  // namespace gpuctl::daemon
