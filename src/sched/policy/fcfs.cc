// fcfs: first come, first served, each job to its end.
//
// Good at: throughput, since nothing is ever evicted. It is what the hardware does by itself, and the papers' baseline.
// Bad at: everything else. One long job holds up all the short ones behind it.
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
class Fcfs : public JobPolicy {
 public:
  void plan(const View& view, Plan& plan) override {
    const std::uint32_t first =
        view.leader != kNoJob ? view.leader : least_job(view.jobs, [](const Job& job) { return job.sequence; });
    plan.run(first, view.capacity);
  }
};
}  // namespace

MadePolicy make_fcfs(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  return finish_policy<Fcfs>(options);
}

}  // namespace gpuctl::sched
