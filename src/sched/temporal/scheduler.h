// The jobs of one device (or of one node of the slice tree on one device) under one temporal policy. Keeps FLEP's T_e,
// T_w and T_r and EffiSha's states, asks the policy after each event, and turns its plans into grants and the time of
// the next decision. Pure: no clock, no I/O. The caller reports what happened, then calls decide().
//
// A caller has four duties:
// - It reports arrive, complete and tail when its clients say so, and observe when it reads a progress word.
// - It reports started when a job in to_run holds its first SM, and evicted when a job in to_evict holds none. A slice
//   counts from `started`, so no job pays for another job's slow eviction.
// - It calls decide(now) after each report (or batch of reports of the same instant) and at JobDecision::again.
// - It applies the grants of the decision.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

struct Grant {
  JobId job = 0;
  CapSM capsm{};  ///< what the job may use from now on; 0: evict all of it
};

/// What changes now. Spans are valid until the next call of decide.
struct JobDecision {
  std::span<const Grant> changed;  ///< jobs whose grant differs from the last decision; those that shrink come first
  Time again = kNever;             ///< call decide then, unless something is reported before
};

/// Not thread-safe. Unknown ids are ignored, because reports cross with completions. Beside the jobs it keeps what
/// would else be found by a pass over all of them, and scratch space, so that a decision allocates nothing.
class Scheduler {
 public:
  Scheduler(std::unique_ptr<JobPolicy> policy, CapSM capacity);

  /// Changes the policy at any time. Jobs keep their SMs until the next decide.
  void set_policy(std::unique_ptr<JobPolicy> policy, Time now);
  void set_capacity(CapSM capacity) { capacity_ = capacity; }

  /// False if the id exists already; then nothing changes.
  bool arrive(const Arrival& arrival, Time now);
  void complete(JobId id, Time now);
  void started(JobId id, Time now);
  void evicted(JobId id, Time now);
  void tail(JobId id, Time now);
  /// Sets T_r to what is really left, from the block-tasks left or the caller's own estimate. Without it T_r falls with
  /// the time that the job holds SMs.
  void observe(JobId id, Time remaining, Time now);
  void set_priority(JobId id, std::int32_t priority);
  void set_weight(JobId id, std::uint32_t weight);

  JobDecision decide(Time now);

  std::span<const Job> jobs() const { return jobs_; }
  /// Null if it is complete or unknown.
  const Job* find(JobId id) const;
  JobState state(JobId id) const { return find(id) ? find(id)->state : JobState::done; }
  CapSM capacity() const { return capacity_; }

 private:
  Job* get(JobId id);
  std::uint32_t index_of(const Job& job) const { return static_cast<std::uint32_t>(&job - jobs_.data()); }
  void add_granted(std::uint32_t index);
  void settle(Job& job, CapSM capsm);
  void advance(Time now);

  std::unique_ptr<JobPolicy> policy_;
  CapSM capacity_;
  std::vector<Job> jobs_;
  std::unordered_map<JobId, std::uint32_t> index_;  ///< into jobs_
  std::vector<std::uint32_t> granted_;              ///< indices of jobs that have a grant or still hold SMs
  JobId leader_ = 0;
  bool has_leader_ = false;
  Time slice_ = kNever;      ///< the leader's
  Time slice_end_ = kNever;  ///< known once the leader has started
  Time advanced_{};          ///< instant up to which T_r of running jobs is accounted for
  std::uint32_t arrivals_ = 0;
  Plan plan_;
  std::vector<Grant> changed_;
};

}  // namespace gpuctl::sched
