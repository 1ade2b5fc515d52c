// sjf: the job whose whole predicted duration is least; a shorter one that arrives evicts a longer one. With the option
// to_end a job that has begun runs to its end, so only those that wait are put in order.
//
// Good at: responsiveness for short work; few evictions, since the order among jobs never changes.
// Bad at: long jobs, which wait as long as shorter ones keep coming (protect_ms bounds that). They can be evicted just
// before their end, because the remaining time does not count. It is only as good as the predictions.
#include "sched/policy/protect.h"

namespace gpuctl::sched {

namespace {
class Sjf : public JobPolicy {
 public:
  explicit Sjf(bool to_end) : to_end_(to_end) {}
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = least_job(view.jobs, [](const Job& job) { return job.predicted; });
    const bool begun = view.leader != kNoJob;
    if (begun && (to_end_ || view.jobs[view.leader].predicted <= view.jobs[next].predicted)) next = view.leader;
    plan.run(next, view.capacity);
  }

 private:
  bool to_end_;
};
}  // namespace

MadePolicy make_sjf(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time protect = read_protect(options);
  const bool to_end = options.flag("to_end");
  if (const auto read = options.finish(); !read) return read.error();
  return protect_from_starving(std::make_unique<Sjf>(to_end), protect);
}

}  // namespace gpuctl::sched
