// dprr: dynamic priority-based round robin (EffiSha section 7). There are two queues. A job runs for a quota and goes
// to the inactive queue; when the active queue is empty the two switch. In the active queue a job's priority rises by 1
// per millisecond of waiting, by 20 at most. The quota is (priority + 1) / 2 ms. Quotas belong to owners, as in the
// paper, whose kernels are launched once: the next launch of an owner goes on with the quota, and waits for the next
// round when it is used up. The paper has no weights; here an owner of half the weight of the heaviest has half the
// quota. Where that would be too short, it has the shortest one and sits out some rounds.
//
// Good at: priorities without starvation: every owner gets a quota before any gets two.
// Bad at: a job of high priority that arrives waits for the running quota to end, and longer if other jobs have risen
// above it. It evicts more often than piv. Priorities below 0 count as 0 for the quota.
#include <algorithm>

#include "sched/policy/weighted_turns.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
constexpr std::int64_t kMaxRise = 20;
constexpr std::int64_t kRiseNs = 1'000'000;  // per 1 of priority
constexpr double kLeastQuotaNs = 250'000;    // a shorter one would be about as short as an eviction
constexpr double kMostRounds = 65536;        // the lightest has a turn all the same

class Dprr : public JobPolicy {
 public:
  void arrived(Job& job, Time now) override {
    if (turns_.arrived(job, round_)) WeightedTurns::of(job).round = round_;
    waits_since(job) = now.count();
  }
  void left(const Job& job, Time now) override {
    if (turns_.left(job, now)) put_behind(job);
  }
  void slice_over(Job& job, Time now) override {
    WeightedTurns::of(job).allowance.end(now);
    put_behind(job);
  }
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = view.leader;
    if (next == kNoJob) next = head(view);
    if (next == kNoJob) {
      round_ = WeightedTurns::round_after(round_, view.jobs);
      for (Job& job : view.jobs) waits_since(job) = view.now.count();
      next = head(view);
    }
    const std::int64_t priority = std::max<std::int64_t>(dynamic(view.jobs[next], view.now), 0);
    std::uint32_t heaviest = 1;
    for (const Job& job : view.jobs) heaviest = std::max(heaviest, job.weight);
    const double quota = static_cast<double>((priority + 1) * kRiseNs) / 2 * view.jobs[next].weight / heaviest;
    WeightedTurns::Turn& turn = WeightedTurns::of(view.jobs[next]);
    if (turn.allowance.left == Time{0})
      turn.rounds =
          static_cast<std::int64_t>(WeightedTurns::kRound * std::clamp(kLeastQuotaNs / quota, 1.0, kMostRounds));
    plan.run(next, view.capacity,
             turn.allowance.begin(Time{static_cast<std::int64_t>(std::max(quota, kLeastQuotaNs))}));
  }

 private:
  void put_behind(const Job& job) { WeightedTurns::of(job).round = round_ + WeightedTurns::of(job).rounds; }
  static std::int64_t& waits_since(Job& job) { return job.mark[1]; }
  static std::int64_t dynamic(const Job& job, Time now) {
    return job.priority + std::min(kMaxRise, (now.count() - job.mark[1]) / kRiseNs);
  }
  /// Of those who have not had their quota in this round. Whose quota has begun goes on.
  std::uint32_t head(const View& view) const {
    std::uint32_t best = kNoJob;
    for (std::uint32_t i = 0; i < view.jobs.size(); ++i)
      if (WeightedTurns::of(view.jobs[i]).round <= round_ &&
          (best == kNoJob || before(view.jobs[i], view.jobs[best], view.now)))
        best = i;
    return best;
  }
  static bool before(const Job& a, const Job& b, Time now) {
    const bool begun_a = begun(a), begun_b = begun(b);
    if (begun_a != begun_b) return begun_a;
    const std::int64_t p = dynamic(a, now), q = dynamic(b, now);
    return p != q ? p > q : a.sequence < b.sequence;
  }
  static bool begun(const Job& job) { return WeightedTurns::of(job).allowance.left > Time{0}; }

  WeightedTurns turns_;
  std::int64_t round_ = 0;
};
}  // namespace

MadePolicy make_dprr(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  return finish_policy<Dprr>(options);
}

}  // namespace gpuctl::sched
