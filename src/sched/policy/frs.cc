// frs: fair and responsive (FRS section IV-E). Runs the job with the greatest instantaneous slowdown,
//   IS = (t + T_r) / T_e        t: time since it arrived,
// until the job with the least IS has become as slow:
//   quantum = IS_max * T_e' - T_r' - t'     of the job with the least IS, at least quantum_ms.
// The paper's jobs are applications. So t and both T count all launches of the owner since it last had nothing to run.
// The paper has no weights. Here each IS counts times the owner's weight, so one of twice the weight is to be half as
// slow.
// (The paper's (1) divides by the tasks done; its text and its (2) divide by all tasks, as this code does.)
//
// Good at: equal slowdowns. Short jobs are served before long ones notice, and no job starves, since waiting raises IS.
// Bad at: throughput with many jobs: it helps the job that suffers most, although others could be finished sooner. It
// needs predictions; wrong ones favour jobs believed to be short.
#include <algorithm>
#include <cmath>

#include "sched/policy/owners.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
constexpr double kLongestQuantumNs = 1e18;

class Frs : public JobPolicy {
 public:
  explicit Frs(Time least_quantum) : least_quantum_(least_quantum) {}
  void arrived(Job& job, Time now) override {
    owners_.arrived(job);
    Owners<Burst>::of(job).arrived(now);
  }
  void left(const Job& job, Time now) override {
    Owners<Burst>::of(job).left(job, now);
    owners_.left(job);
  }
  void plan(const View& view, Plan& plan) override {
    const auto jobs = view.jobs;
    std::uint32_t slowest = 0, fastest = 0;
    double most = weighed(jobs[0], view.now), least = most;
    for (std::uint32_t i = 1; i < jobs.size(); ++i) {
      const double slowdown = weighed(jobs[i], view.now);
      if (slowdown > most || (slowdown == most && jobs[i].sequence < jobs[slowest].sequence))
        slowest = i, most = slowdown;
      if (slowdown < least) fastest = i, least = slowdown;
    }
    const Job& last = jobs[fastest];
    const double quantum = most / last.weight * alone(last) - turnaround(last, view.now);
    plan.run(slowest, view.capacity,
             std::max(Time{std::llround(std::min(quantum, kLongestQuantumNs))}, least_quantum_));
    plan.renew = true;
  }

 private:
  /// Of the burst, if the job ran from now on to its end.
  static double turnaround(const Job& job, Time now) {
    return static_cast<double>((Owners<Burst>::of(job).turnaround + (now - job.arrived) + job.remaining).count());
  }
  static double alone(const Job& job) {
    return static_cast<double>((Owners<Burst>::of(job).alone + job.predicted).count());
  }
  static double weighed(const Job& job, Time now) { return turnaround(job, now) / alone(job) * job.weight; }

  Time least_quantum_;
  Owners<Burst> owners_;
};
}  // namespace

MadePolicy make_frs(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time quantum = options.milliseconds("quantum_ms", 1, 0.05, 10000);  // 1 ms: as FRS section VI-C
  return finish_policy<Frs>(options, quantum);
}

}  // namespace gpuctl::sched
