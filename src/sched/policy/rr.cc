// rr: round robin. Each job in turn gets one quantum.
//
// Good at: no job ever starves, without any prediction. A job shorter than the quantum waits at most one round.
// Bad at: many jobs: each is slowed down by their number, and each quantum costs an eviction. The quantum must lie
// between the cost of an eviction and the shortest job that matters.
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
class RoundRobin : public JobPolicy {
 public:
  explicit RoundRobin(Time quantum) : quantum_(quantum) {}
  void arrived(Job& job, Time) override { turn(job) = ++last_turn_; }
  void slice_over(Job& job, Time) override { turn(job) = ++last_turn_; }
  void plan(const View& view, Plan& plan) override {
    const std::uint32_t next =
        view.leader != kNoJob ? view.leader : least_job(view.jobs, [](const Job& job) { return job.mark[0]; });
    plan.run(next, view.capacity, quantum_);
  }

 private:
  static std::int64_t& turn(Job& job) { return job.mark[0]; }
  Time quantum_;
  std::int64_t last_turn_ = 0;
};
}  // namespace

MadePolicy make_rr(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time quantum = options.milliseconds("quantum_ms", 1, 0.05, 10000);  // 1 ms: as FRS section VI-C
  return finish_policy<RoundRobin>(options, quantum);
}

}  // namespace gpuctl::sched
