// rr: round robin. Each job in turn gets one quantum. The paper has no weights; here a job of half the weight of the
// heaviest has every second turn.
//
// Good at: no job ever starves, without any prediction. A job shorter than the quantum waits at most one round.
// Bad at: many jobs: each is slowed down by their number, and each quantum costs an eviction. The quantum must lie
// between the cost of an eviction and the shortest job that matters.
#include "sched/policy/weighted_turns.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
class RoundRobin : public JobPolicy {
 public:
  explicit RoundRobin(Time quantum) : quantum_(quantum) {}
  void arrived(Job& job, Time) override { queue(job, round_); }
  void slice_over(Job& job, Time) override { queue(job, WeightedTurns::next(job)); }
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = view.leader;
    if (next == kNoJob) {
      turns_.count(view.jobs);
      next = least_job(view.jobs, [](const Job& job) { return std::pair(WeightedTurns::next(job), job.mark[1]); });
      round_ = WeightedTurns::next(view.jobs[next]);
    }
    plan.run(next, view.capacity, quantum_);
  }

 private:
  /// Behind those that are in the queue already with a turn in the same round.
  void queue(Job& job, std::int64_t from) {
    turns_.put_behind(job, from);
    job.mark[1] = ++queued_;
  }

  Time quantum_;
  WeightedTurns turns_;
  std::int64_t round_ = 0, queued_ = 0;
};
}  // namespace

MadePolicy make_rr(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time quantum = options.milliseconds("quantum_ms", 1, 0.05, 10000);  // 1 ms: as FRS section VI-C
  return finish_policy<RoundRobin>(options, quantum);
}

}  // namespace gpuctl::sched
