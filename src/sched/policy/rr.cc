// rr: round robin. Each owner in turn gets one quantum, for one launch or several. The paper has no weights; here an
// owner of half the weight of the heaviest has every second turn.
//
// Good at: nobody ever starves, without any prediction. A job shorter than the quantum waits at most one round.
// Bad at: many jobs: each is slowed down by their number, and each quantum costs an eviction. The quantum must lie
// between the cost of an eviction and the shortest job that matters.
#include "sched/policy/weighted_turns.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
class RoundRobin : public TurnPolicy {
 public:
  explicit RoundRobin(Time quantum) : quantum_(quantum) {}
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = view.leader;
    if (next == kNoJob) {
      turns_.count(view.jobs);
      next = least_job(view.jobs, [](const Job& job) {
        const WeightedTurns::Turn& turn = WeightedTurns::of(job);
        return std::pair(turn.round, turn.order);
      });
      round_ = WeightedTurns::of(view.jobs[next]).round;
    }
    plan.run(next, view.capacity, WeightedTurns::of(view.jobs[next]).allowance.begin(quantum_));
  }

 private:
  Time quantum_;
};
}  // namespace

MadePolicy make_rr(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time quantum = options.milliseconds("quantum_ms", 1, 0.05, 10000);  // 1 ms: as FRS section VI-C
  return finish_policy<RoundRobin>(options, quantum);
}

}  // namespace gpuctl::sched
