// The jobs of one device (or of one node of the slice tree on one device) under one temporal policy: keeps FLEP's
// T_e, T_w and T_r and EffiSha's states, asks the policy after each event, and turns its plans into grants and the
// instant of the next question. Pure: no clock, no I/O. Whoever drives it reports what happened, then calls decide().
//
// A caller has four duties:
//   - arrive, complete and tail when its clients say so, observe when it reads a progress word;
//   - started when a job that was to_run holds its first SM, evicted when one that was to_evict holds none: a slice
//     counts from `started`, so nobody pays for another job's slow eviction;
//   - decide(now) after each report (or batch of reports of the same instant) and at Decision::again;
//   - apply the grants of the decision.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

struct Grant {
  JobId job = 0;
  CapSM capsm{};  ///< may use from now on; 0 = evict all of it
};

/// What changes now. Spans are valid until the next call of decide.
struct JobDecision {
  std::span<const Grant> changed;  ///< jobs whose grant differs from the last decision: shrinking ones first
  Time again = kNever;             ///< call decide then, unless something is reported before
};

/// Not thread-safe. Unknown ids are ignored: reports cross with completions.
class Scheduler {
 public:
  Scheduler(std::unique_ptr<JobPolicy> policy, CapSM capacity);

  /// Changes the policy in the middle of everything: jobs keep their SMs until the next decide says otherwise.
  void set_policy(std::unique_ptr<JobPolicy> policy, Time now);
  void set_capacity(CapSM capacity) { capacity_ = capacity; }

  /// False when the id is already there: nothing changes.
  bool arrive(const Arrival& arrival, Time now);
  void complete(JobId id, Time now);
  void started(JobId id, Time now);
  void evicted(JobId id, Time now);
  void tail(JobId id, Time now);
  /// Corrects T_r by what is really left: block-tasks left, or the caller's own estimate. Without it T_r falls with the
  /// time the job holds SMs.
  void observe(JobId id, Time remaining, Time now);
  void set_priority(JobId id, std::int32_t priority, std::uint32_t weight);

  JobDecision decide(Time now);

  std::span<const Job> jobs() const { return jobs_; }
  /// Null when it is not there (complete, or never heard of).
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
  std::vector<std::uint32_t> granted_;              ///< indices of jobs with a grant, or still holding SMs
  JobId leader_ = 0;
  bool has_leader_ = false;
  Time slice_ = kNever;      ///< of the leader
  Time slice_end_ = kNever;  ///< known once it has started
  Time advanced_{};          ///< T_r of running jobs is right at this instant
  std::uint32_t arrivals_ = 0;
  Plan plan_;
  std::vector<Grant> changed_;
};

}  // namespace gpuctl::sched
