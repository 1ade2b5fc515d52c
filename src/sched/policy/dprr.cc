// dprr: dynamic priority-based round robin (EffiSha section 7). There are two queues. A job runs for a quota and goes
// to the inactive queue; when the active queue is empty the two switch. In the active queue a job's priority rises by 1
// per millisecond of waiting, by 20 at most. The quota is (priority + 1) / 2 ms. The level of a stream, where streams
// are jobs, adds to the priority. The paper has no weights; here a job of half the weight of the heaviest has half the
// quota. Where that would be too short, it has the shortest one and sits out some rounds.
//
// Good at: priorities without starvation: every job gets a quota before any job gets two.
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
    round_of(job) = round_;
    job.mark[1] = now.count();
  }
  void slice_over(Job& job, Time) override { round_of(job) = round_ + rounds_; }
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = view.leader;
    if (next == kNoJob) next = head(view);
    if (next == kNoJob) {
      round_ = WeightedTurns::round_after(round_, view.jobs);
      for (Job& job : view.jobs) job.mark[1] = view.now.count();
      next = head(view);
    }
    const std::int64_t priority = std::max<std::int64_t>(dynamic(view.jobs[next], view.now), 0);
    std::uint32_t heaviest = 1;
    for (const Job& job : view.jobs) heaviest = std::max(heaviest, job.weight);
    const double quota = static_cast<double>((priority + 1) * kRiseNs) / 2 * view.jobs[next].weight / heaviest;
    if (view.leader == kNoJob)
      rounds_ = static_cast<std::int64_t>(WeightedTurns::kRound * std::clamp(kLeastQuotaNs / quota, 1.0, kMostRounds));
    plan.run(next, view.capacity, Time{static_cast<std::int64_t>(std::max(quota, kLeastQuotaNs))});
  }

 private:
  static std::int64_t& round_of(Job& job) { return job.mark[0]; }
  static std::int64_t dynamic(const Job& job, Time now) {
    return job.priority + job.level + std::min(kMaxRise, (now.count() - job.mark[1]) / kRiseNs);
  }
  std::uint32_t head(const View& view) const {
    std::uint32_t best = kNoJob;
    for (std::uint32_t i = 0; i < view.jobs.size(); ++i) {
      const Job& job = view.jobs[i];
      if (WeightedTurns::next(job) > round_) continue;
      if (best == kNoJob) {
        best = i;
        continue;
      }
      const std::int64_t p = dynamic(job, view.now), q = dynamic(view.jobs[best], view.now);
      if (p > q || (p == q && job.sequence < view.jobs[best].sequence)) best = i;
    }
    return best;
  }

  std::int64_t round_ = 0;
  std::int64_t rounds_ = WeightedTurns::kRound;  ///< after so many the job that runs has its next turn
};
}  // namespace

MadePolicy make_dprr(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  return finish_policy<Dprr>(options);
}

}  // namespace gpuctl::sched
