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
    if (std::exchange(member.at().queue, this) != this) member.job() = {}, member.at().burst.pause();
    scheduler_.set_priority(member.job().id, member.priority);
  }
  const auto is_latest = [this](const Member& member) { return member.client == latest_; };
  if (std::none_of(members_.begin(), members_.end(), is_latest))
    latest_ = members_.empty() ? nullptr : members_.front().client;
}

void JobQueue::set_capacity(CapSM capacity) {
  anything_new_ |= capacity != scheduler_.capacity();
  scheduler_.set_capacity(capacity);
}

void JobQueue::forget(const Client& client, std::uint64_t now_ns) {
  for (const Member& member : members_)
    if (member.client == &client) leave(member.job(), instant(now_ns));
  std::erase_if(members_, [&](const Member& member) { return member.client == &client; });
  if (latest_ == &client) latest_ = nullptr;
}

void JobQueue::leave(ClientJob& job, Time now) {
  if (job.id != 0) scheduler_.complete(job.id, now);
  job = {};
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
    const ClientJob& job = member.job();
    if (scheduler_.state(job.id) == JobState::to_run)
      again_ns_ = std::min(again_ns_, (job.given_ns != 0 ? job.given_ns : now_ns) + kComesWithinNs);
  }
  return admit();
}

/// The weight of a job is the part of the time that it is due beside the other jobs that are there now. So a slice is
/// due its part however many slices, clients and weights there are below it.
void JobQueue::weigh() {
  jobs_in_.assign(nodes_.size(), 0);
  for (const Member& member : members_) jobs_in_[member.client->node] += scheduler_.find(member.job().id) != nullptr;
  const std::span<const double> parts = parts_.compute(nodes_, jobs_in_);
  for (const Member& member : members_)
    scheduler_.set_weight(member.job().id,
                          static_cast<std::uint32_t>(std::lround(parts[member.client->node] * kWeightOfAll)));
}

/// SMs that the policy leaves free may be of no use to any job. The one with the longest remaining time tries them.
bool JobQueue::admit() {
  bool changed = false;
  const std::size_t jobs = scheduler_.jobs().size();
  const sched::Job* longest = nullptr;
  CapSM left = scheduler_.capacity();
  for (const sched::Job& job : scheduler_.jobs()) {
    left -= std::min(left, job.granted);
    if (job.granted.count > 0 && job.granted < job.need && (longest == nullptr || job.remaining > longest->remaining))
      longest = &job;
  }
  const auto granted_to = [&](const sched::Job* job) {
    if (job == nullptr) return CapSM{};
    return job == longest ? std::min(job->granted + left, job->need) : job->granted;
  };
  for (const Member& member : members_)
    if (granted_to(scheduler_.find(member.job().id)).count > 0) latest_ = member.client;
  for (const Member& member : members_) {
    Client::Slot& slot = member.at();
    const sched::Job* job = scheduler_.find(slot.job.id);
    const CapSM granted = granted_to(job);
    // A client alone gets all SMs, whatever it can use: no other wants them, and so it is learnt what it can use.
    const bool alone = job != nullptr && jobs == 1;
    const bool all = granted >= scheduler_.capacity() || alone || (jobs == 0 && member.client == latest_);
    const std::uint32_t admitted = all ? ipc::kUnlimited : granted.count;
    const std::uint32_t spread = !all && job != nullptr && granted > job->need ? granted.count : 0;
    const std::uint32_t wanted = jobs > 1 ? ipc::kReportEachJob : ipc::kReportJobs;
    changed |= std::exchange(slot.admitted, admitted) != admitted;
    changed |= std::exchange(slot.spread, spread) != spread;
    slot.wanted_jobs = wanted;
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
