// piv: priority-based immediate eviction (EffiSha section 7). One queue in the order of priorities. A job that arrives
// evicts the running job only if its priority is higher; otherwise the running job runs to its end.
//
// Good at: high priorities, which never wait for lower ones. It needs no prediction, and equal priorities never evict
// each other.
// Bad at: low priorities, which may starve (protect_ms bounds that), and short jobs behind long ones of the same
// priority.
#include "sched/policy/protect.h"

namespace gpuctl::sched {

namespace {
class Piv : public JobPolicy {
 public:
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = first_job(view.jobs, [](const Job& a, const Job& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.sequence < b.sequence;
    });
    if (view.leader != kNoJob && view.jobs[view.leader].priority >= view.jobs[next].priority) next = view.leader;
    plan.run(next, view.capacity);
  }
  bool priority_decides() const override { return true; }
};
}  // namespace

MadePolicy make_piv(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time protect = read_protect(options);
  if (const auto read = options.finish(); !read) return read.error();
  return protect_from_starving(std::make_unique<Piv>(), protect);
}

}  // namespace gpuctl::sched
