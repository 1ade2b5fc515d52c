#include "sched/temporal/scheduler.h"

#include <algorithm>

namespace gpuctl::sched {

std::string_view to_string(JobState state) {
  switch (state) {
    case JobState::ready:
      return "ready";
    case JobState::to_run:
      return "to-run";
    case JobState::running:
      return "running";
    case JobState::to_evict:
      return "to-evict";
    case JobState::done:
      break;
  }
  return "done";
}

Scheduler::Scheduler(std::unique_ptr<JobPolicy> policy, CapSM capacity)
    : policy_(std::move(policy)), capacity_(capacity) {}

void Scheduler::set_policy(std::unique_ptr<JobPolicy> policy, Time now) {
  advance(now);
  policy_ = std::move(policy);
  has_leader_ = false;
  slice_ = slice_end_ = kNever;
  std::vector<Job*> in_order;
  for (Job& job : jobs_) in_order.push_back(&job);
  std::sort(in_order.begin(), in_order.end(), [](const Job* a, const Job* b) { return a->sequence < b->sequence; });
  for (Job* job : in_order) {
    job->mark[0] = job->mark[1] = 0;
    policy_->arrived(*job, now);
  }
}

Job* Scheduler::get(JobId id) {
  const auto at = index_.find(id);
  return at == index_.end() ? nullptr : &jobs_[at->second];
}

const Job* Scheduler::find(JobId id) const {
  const auto at = index_.find(id);
  return at == index_.end() ? nullptr : &jobs_[at->second];
}

bool Scheduler::arrive(const Arrival& arrival, Time now) {
  if (!index_.emplace(arrival.id, static_cast<std::uint32_t>(jobs_.size())).second) return false;
  advance(now);
  Job job;
  job.id = arrival.id;
  job.owner = arrival.owner;
  job.arrived = job.since = now;
  job.predicted = job.remaining = std::max(arrival.predicted, Time{1});
  job.behind = std::min(arrival.behind, job.predicted - Time{1});
  job.eviction = arrival.eviction;
  job.sequence = arrivals_++;
  job.kernel = arrival.kernel;
  job.slice = arrival.slice;
  job.priority = arrival.priority;
  job.weight = std::max<std::uint32_t>(arrival.weight, 1);
  job.need = std::max(arrival.need, CapSM{1});
  jobs_.push_back(job);
  policy_->arrived(jobs_.back(), now);
  return true;
}

void Scheduler::complete(JobId id, Time now) {
  advance(now);
  const auto at = index_.find(id);
  if (at == index_.end()) return;
  const std::uint32_t index = at->second;
  index_.erase(at);
  policy_->left(jobs_[index], now);
  std::erase(granted_, index);
  if (has_leader_ && leader_ == id) has_leader_ = false, slice_end_ = kNever;
  if (index + 1 != jobs_.size()) {
    jobs_[index] = jobs_.back();
    index_[jobs_[index].id] = index;
    std::replace(granted_.begin(), granted_.end(), static_cast<std::uint32_t>(jobs_.size() - 1), index);
  }
  jobs_.pop_back();
}

void Scheduler::started(JobId id, Time now) {
  advance(now);
  Job* job = get(id);
  if (job == nullptr || job->holds()) return;
  job->waited += now - job->since;
  job->since = now;
  job->state = job->granted.count > 0 ? JobState::running : JobState::to_evict;
  add_granted(index_of(*job));
  if (has_leader_ && leader_ == id && slice_ != kNever) slice_end_ = now + slice_;
}

void Scheduler::evicted(JobId id, Time now) {
  advance(now);
  Job* job = get(id);
  if (job == nullptr || !job->holds()) return;
  job->since = now;
  ++job->evictions;
  job->state = job->granted.count > 0 ? JobState::to_run : JobState::ready;
  if (job->granted.count == 0) std::erase(granted_, index_of(*job));
}

void Scheduler::tail(JobId id, Time now) {
  advance(now);
  Job* job = get(id);
  if (job == nullptr || job->tail) return;
  job->tail = true;
  policy_->all_claimed(*job, now);
}

void Scheduler::observe(JobId id, Time remaining, Time now) {
  advance(now);
  if (Job* job = get(id)) job->remaining = std::max(remaining, Time{0});
}

void Scheduler::set_priority(JobId id, std::int32_t priority) {
  if (Job* job = get(id)) job->priority = priority;
}

void Scheduler::set_weight(JobId id, std::uint32_t weight) {
  if (Job* job = get(id)) job->weight = std::max<std::uint32_t>(weight, 1);
}

/// `number` is not negative. The processor divides 32-bit numbers in a fraction of the time.
static std::int64_t divided(std::int64_t number, std::uint32_t by) {
  return number <= UINT32_MAX ? static_cast<std::uint32_t>(number) / by : number / by;
}

// FLEP subtracts the time on the device from T_r. A job with a part of the SMs it can use progresses in proportion.
void Scheduler::advance(Time now) {
  const Time elapsed = now - advanced_;
  if (elapsed <= Time{0}) return;
  advanced_ = now;
  for (const std::uint32_t index : granted_) {
    Job* job = &jobs_[index];
    if (job->state != JobState::running) continue;
    const CapSM usable = std::min(job->need, capacity_), used = std::min(job->granted, usable);
    const Time done = used == usable ? elapsed : Time{divided(elapsed.count(), usable.count) * used.count};
    job->remaining = std::max(job->remaining - done, Time{0});
  }
}

void Scheduler::add_granted(std::uint32_t index) {
  if (std::find(granted_.begin(), granted_.end(), index) == granted_.end()) granted_.push_back(index);
}

void Scheduler::settle(Job& job, CapSM capsm) {
  job.granted = capsm;
  if (capsm.count > 0) {
    job.state = job.holds() ? JobState::running : JobState::to_run;
  } else if (job.holds()) {
    job.state = JobState::to_evict;
  } else {
    job.state = JobState::ready;
    std::erase(granted_, index_of(job));
  }
}

JobDecision Scheduler::decide(Time now) {
  advance(now);
  if (has_leader_ && now >= slice_end_) {
    if (Job* job = get(leader_)) policy_->slice_over(*job, now);
    has_leader_ = false;
    slice_end_ = kNever;
  }
  plan_.clear();
  if (!jobs_.empty()) {
    View view{jobs_, kNoJob, capacity_, now};
    if (has_leader_) view.leader = index_.at(leader_);
    policy_->plan(view, plan_);
  }

  // First the grants that shrink, to 0 if they are not in the plan, then those that grow: room is made before it is
  // used.
  changed_.clear();
  for (const Share& share : plan_.shares) jobs_[share.job].planned = share.capsm;
  for (const std::uint32_t index : granted_) {
    const Job& job = jobs_[index];
    if (job.planned < job.granted) changed_.push_back({job.id, job.planned});
  }
  for (const Share& share : plan_.shares) {
    const Job& job = jobs_[share.job];
    if (job.planned > job.granted) {
      changed_.push_back({job.id, share.capsm});
      add_granted(share.job);
    }
  }
  for (const Share& share : plan_.shares) jobs_[share.job].planned = CapSM{};
  for (const Grant& grant : changed_) settle(*get(grant.job), grant.capsm);

  const bool same = has_leader_ && !plan_.shares.empty() && jobs_[plan_.shares[0].job].id == leader_;
  if (plan_.shares.empty()) {
    has_leader_ = false;
    slice_end_ = kNever;
  } else if (!same || plan_.renew) {
    const Job& job = jobs_[plan_.shares[0].job];
    has_leader_ = true;
    leader_ = job.id;
    slice_ = plan_.slice;
    slice_end_ = job.state == JobState::running && slice_ != kNever ? now + slice_ : kNever;
  }
  return {changed_, std::min(slice_end_, std::max(plan_.again, now + Time{1}))};
}

}  // namespace gpuctl::sched
