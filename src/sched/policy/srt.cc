// srt: the job with the shortest remaining time.
//
// Good at: the least mean waiting time there is, when predictions hold; few evictions, since a running job only gets
// shorter.
// Bad at: long jobs under a stream of short ones (protect_ms bounds that). It evicts for any gain, however small beside
// the cost of an eviction; hpf with equal priorities does not.
#include "sched/policy/protect.h"

namespace gpuctl::sched {

namespace {
class Srt : public JobPolicy {
 public:
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = least_job(view.jobs, [](const Job& job) { return job.remaining; });
    if (view.leader != kNoJob && view.jobs[view.leader].remaining <= view.jobs[next].remaining) next = view.leader;
    plan.run(next, view.capacity);
  }
};
}  // namespace

MadePolicy make_srt(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time protect = read_protect(options);
  if (const auto read = options.finish(); !read) return read.error();
  return protect_from_starving(std::make_unique<Srt>(), protect);
}

}  // namespace gpuctl::sched
