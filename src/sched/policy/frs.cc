// frs: fair and responsive (FRS section IV-E). Runs the job with the greatest instantaneous slowdown,
//   IS = (t + T_r) / T_e        t: time since it arrived,
// until the job with the least IS has become as slow:
//   quantum = IS_max * T_e' - T_r' - t'     of the job with the least IS, at least quantum_ms.
// The paper has no weights. Here each IS counts times the job's weight, so a job of twice the weight is to be half as
// slow.
// (The paper's (1) divides by the tasks done; its text and its (2) divide by all tasks, as this code does.)
//
// Good at: equal slowdowns. Short jobs are served before long ones notice, and no job starves, since waiting raises IS.
// Bad at: throughput with many jobs: it helps the job that suffers most, although others could be finished sooner. It
// needs predictions; wrong ones favour jobs believed to be short.
#include <algorithm>
#include <cmath>

#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
class Frs : public JobPolicy {
 public:
  explicit Frs(Time least_quantum) : least_quantum_(least_quantum) {}
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
    const double quantum = most / last.weight * static_cast<double>(last.predicted.count()) -
                           static_cast<double>((last.remaining + (view.now - last.arrived)).count());
    plan.run(slowest, view.capacity, std::max(Time{std::llround(quantum)}, least_quantum_));
    plan.renew = true;
  }

 private:
  static double weighed(const Job& job, Time now) { return job.slowdown(now) * job.weight; }

  Time least_quantum_;
};
}  // namespace

MadePolicy make_frs(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time quantum = options.milliseconds("quantum_ms", 1, 0.05, 10000);  // 1 ms: as FRS section VI-C
  return finish_policy<Frs>(options, quantum);
}

}  // namespace gpuctl::sched
