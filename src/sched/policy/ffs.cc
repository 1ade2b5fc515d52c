// ffs: fairness first under an overhead constraint (FLEP 5.2.2). Weighted round robin: owner i has the device for an
// epoch of T W_i, with the least T for which sum O_i / (T sum W_i) <= max_overhead.
//
// Good at: shares of GPU time in proportion to the weights, with a bounded cost of switching.
// Bad at: responsiveness: each owner waits for the epochs of all the others, and epochs grow with the time that
// evictions take.
//
// Epochs belong to the owner (a stream), not to the job. A stream that launches its next kernel while its epoch lasts
// goes on with it. A stream that pauses keeps the rest of its epoch for its next turn. Where T W_i is too short, the
// owner has a longer epoch and sits out some rounds: whoever had least time for its weight is next.
#include <cmath>

#include "sched/policy/owners.h"
#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
// T would be 0 where evictions cost nothing. One eviction of the measured 66 us fits into this.
constexpr Time kLeastEpoch = std::chrono::microseconds{100};

class Ffs : public JobPolicy {
 public:
  explicit Ffs(double max_overhead) : max_overhead_(max_overhead) {}

  void arrived(Job& job, Time) override {
    const bool is_new = owners_.arrived(job);
    Account& account = Owners<Account>::of(job);
    if (is_new) account.order = ++ordered_;
    account.had = std::max(account.had, had_);
  }
  void left(const Job& job, Time now) override {
    Account& account = Owners<Account>::of(job);
    owners_.left(job);
    if (account.allowance.spend(job, now)) end(account);
  }
  void slice_over(Job& job, Time now) override {
    Account& account = Owners<Account>::of(job);
    account.allowance.end(now);
    end(account);
  }
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = view.leader;
    if (next == kNoJob)
      next = least_job(view.jobs, [](const Job& job) {
        const Account& account = Owners<Account>::of(job);
        return std::tuple(account.allowance.left == Time{0}, account.had, account.order);
      });
    Account& account = Owners<Account>::of(view.jobs[next]);
    if (account.allowance.left == Time{0}) {
      account.epoch = epoch(view, view.jobs[next].weight);
      account.weight = view.jobs[next].weight;
    }
    had_ = std::max(had_, account.had);
    plan.run(next, view.capacity, account.allowance.begin(account.epoch));
  }

 private:
  struct Account {
    double had = 0;          ///< time, in ns for a weight of 1
    std::int64_t order = 0;  ///< of those who had the same, the least is next
    Time epoch{};
    std::uint32_t weight = 1;
    Allowance allowance;  ///< of the epoch
  };

  void end(Account& account) {
    account.had += static_cast<double>(account.epoch.count()) / account.weight;
    account.order = ++ordered_;
  }
  Time epoch(const View& view, std::uint32_t weight) const {
    double overheads = 0, weights = 0;
    for (const Job& job : view.jobs) overheads += static_cast<double>(job.eviction.count()), weights += job.weight;
    return std::max(Time{std::llround(overheads / (max_overhead_ * weights) * weight)}, kLeastEpoch);
  }

  double max_overhead_;
  double had_ = 0;  ///< Account::had of the latest to begin an epoch: nobody who comes had less
  std::int64_t ordered_ = 0;
  Owners<Account> owners_;
};
}  // namespace

MadePolicy make_ffs(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const double max_overhead = options.number("max_overhead", 0.1, 0.001, 1);  // 10 %: as FLEP 6.3.3
  return finish_policy<Ffs>(options, max_overhead);
}

}  // namespace gpuctl::sched
