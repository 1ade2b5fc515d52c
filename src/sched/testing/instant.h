// For tests of policies for jobs: a device that starts and evicts in no time.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "sched/temporal/scheduler.h"

namespace gpuctl::sched::instant {

constexpr Time us(std::int64_t n) {
  return std::chrono::microseconds{n};
}
constexpr Time ms(std::int64_t n) {
  return std::chrono::milliseconds{n};
}

/// A Scheduler on such a device.
class Instant {
 public:
  explicit Instant(const char* policy, CapSM capacity = CapSM{15}, PolicyInputs inputs = {})
      : scheduler(std::move(*make_job_policy(policy, std::move(inputs))), capacity) {}

  void arrive(JobId id, Time predicted, std::int32_t priority = 0, CapSM need = CapSM{15}, Time eviction = us(50),
              std::uint32_t weight = 1) {
    scheduler.arrive({id, id, static_cast<std::uint32_t>(id), 0, priority, weight, need, predicted, eviction}, now);
    ask();
  }
  void complete(JobId id) {
    scheduler.complete(id, now);
    ask();
  }
  void ask() {
    for (bool again = true; again;) {
      const JobDecision decision = scheduler.decide(now);
      next = decision.again;
      again = false;
      for (const Grant& grant : decision.changed) {
        if (grant.capsm.count == 0) scheduler.evicted(grant.job, now), again = true;
        if (grant.capsm.count > 0 && scheduler.state(grant.job) == JobState::to_run)
          scheduler.started(grant.job, now), again = true;
      }
    }
  }
  void at(Time t) {
    now = t;
    ask();
  }
  /// CapSM by job, for the jobs that run.
  std::map<JobId, std::uint32_t> running() const {
    std::map<JobId, std::uint32_t> result;
    for (const Job& job : scheduler.jobs())
      if (job.granted.count > 0) result[job.id] = job.granted.count;
    return result;
  }
  JobId runs() const { return running().size() == 1 ? running().begin()->first : 0; }

  Scheduler scheduler;
  Time now{};
  Time next = kNever;
};

}  // namespace gpuctl::sched::instant
