// cfs: in each epoch every owner gets an equal part of it, for one launch or several. The job that has waited longest
// comes first (FRS section IV-D). The paper has no weights; here an owner of half the weight of the heaviest has a part
// of every second epoch.
//
// Good at: equal time for all within a bounded round, without predictions.
// Bad at: short jobs among many. The part shrinks with the number of jobs, so a short job needs several rounds, and
// each round costs an eviction. It is the slowest of the policies here for short jobs.
#include <algorithm>

#include "sched/policy/weighted_turns.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
// A shorter part would be about as short as an eviction, whatever the epoch.
constexpr Time kLeastPart = std::chrono::microseconds{250};

/// Its rounds are epochs.
class Cfs : public TurnPolicy {
 public:
  explicit Cfs(Time epoch) : epoch_length_(epoch) {}
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = view.leader;
    if (next == kNoJob) {
      turns_.count(view.jobs);
      next = longest_waiting(view);
    }
    if (next == kNoJob) {
      round_ = WeightedTurns::round_after(round_, view.jobs);
      next = longest_waiting(view);
    }
    const Time part = std::max(epoch_length_ / static_cast<std::int64_t>(view.jobs.size()), kLeastPart);
    plan.run(next, view.capacity, WeightedTurns::of(view.jobs[next]).allowance.begin(part));
  }

 private:
  /// Among the jobs whose owners have not had their part of this epoch. Whose part has begun goes on.
  std::uint32_t longest_waiting(const View& view) const {
    std::uint32_t best = kNoJob;
    for (std::uint32_t i = 0; i < view.jobs.size(); ++i) {
      const Job& job = view.jobs[i];
      if (WeightedTurns::of(job).round > round_) continue;
      if (best == kNoJob || before(job, view.jobs[best], view.now)) best = i;
    }
    return best;
  }
  static bool before(const Job& a, const Job& b, Time now) {
    const bool begun_a = begun(a), begun_b = begun(b);
    if (begun_a != begun_b) return begun_a;
    const Time wa = a.waited_at(now), wb = b.waited_at(now);
    return wa != wb ? wa > wb : a.sequence < b.sequence;
  }

  static bool begun(const Job& job) { return WeightedTurns::of(job).allowance.left > Time{0}; }

  Time epoch_length_;
};
}  // namespace

MadePolicy make_cfs(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const Time epoch = options.milliseconds("epoch_ms", 4, 0.25, 10000);  // 4 ms: as FRS section VI-C
  return finish_policy<Cfs>(options, epoch);
}

}  // namespace gpuctl::sched
