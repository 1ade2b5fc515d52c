// One simulated device, or one context of it (turns.h): the daemon's Scheduler, and the model in simulate.h of what a
// GPU makes of its grants.
#pragma once

#include <memory>
#include <vector>

#include "sched/residency/room.h"
#include "sched/simulator/outcome.h"
#include "sched/simulator/workload.h"
#include "sched/temporal/scheduler.h"

namespace gpuctl::sched {

/// One launch, from its arrival to its end. Launches are numbered in the order of arrival; the number is the JobId.
struct SimJob {
  std::uint32_t application = 0, instance = 0;
  std::int32_t priority = 0;
  Time arrived{}, alone{}, predicted{};
  double left = 0;           ///< remaining work, in ns by itself on the whole device
  CapSM held{}, target{};    ///< held does not count what is being evicted
  Time works_from = kNever;  ///< while it holds SMs: when it begins, or began, to work on them, by own time
  bool tail = false;
};

/// Beside its own state it keeps references to what all devices of a simulation share.
class SimDevice {
 public:
  SimDevice(const Workload& workload, std::uint32_t index, std::unique_ptr<JobPolicy> policy, std::vector<SimJob>& jobs,
            Outcome& outcome);

  /// Does all that happens at `now` before new jobs arrive: SMs become free, jobs end (their ids go to `finished`).
  void run_until(Time now, std::vector<JobId>& finished);
  void arrive(JobId id, Time now);
  /// Asks the policy and applies its plan.
  void decide(Time now);
  /// Whether a job has SMs. After decide().
  bool has_work() const { return !active_.empty(); }
  /// Its context has the GPU from an instant on, or, kNever, it waits for its turn: all of it stands still. After
  /// run_until(now).
  void set_turn(Time from);
  /// When run_until() and decide() are due, if nothing else happens before. After decide() and set_turn().
  Time next_event(Time now) const;

 private:
  /// SMs on their way from one job to the next. Times are the context's own.
  struct Drain {
    JobId job;
    CapSM capsm;
    Time working_until, free_at;
  };

  const Application& application(const SimJob& job) const { return workload_.applications[job.application]; }
  CapSM usable(const SimJob& job) const;
  CapSM useful(const SimJob& job) const;
  double rate(JobId id) const;
  double undisturbed(JobId id) const;
  double speed(const SimJob& job, double capsm) const;
  Time eviction_cost(const SimJob& job) const;
  void shrink(JobId id, CapSM to, Time now);
  bool grow(Time now);
  bool start_those_ready(Time now);
  CapSM taken(JobId id) const;
  void free(JobId id, CapSM capsm);
  bool draining(JobId id) const;
  Time own(Time now) const;
  Time real(Time own) const;

  const Workload& workload_;
  std::uint32_t index_;
  Scheduler scheduler_;
  std::vector<SimJob>& jobs_;
  Outcome& outcome_;
  Room room_;
  // The context's own time is that for which it had the GPU: how much it was at the last run_until(), and when its turn
  // began or ended.
  Time own_{}, spent_{};
  Time turn_from_{};
  Time again_ = kNever;          ///< when the policy wants to be asked
  std::vector<JobId> active_;    ///< hold SMs or are being drained
  std::vector<JobId> starting_;  ///< those of active_ that do not work on their SMs yet
  std::vector<JobId> wanting_;   ///< have a grant beyond what they hold; the earliest grant comes first
  std::vector<Drain> drains_;
};

}  // namespace gpuctl::sched
