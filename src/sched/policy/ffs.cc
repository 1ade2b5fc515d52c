// ffs: fairness first under an overhead constraint (FLEP 5.2.2). Weighted round robin: owner i has the device for an
// epoch of T W_i, with the least T for which sum O_i / (T sum W_i) <= max_overhead.
//
// Good at: shares of GPU time in proportion to the weights, with a bounded cost of switching.
// Bad at: responsiveness: each owner waits for the epochs of all the others, and epochs grow with the time that
// evictions take.
//
// Epochs belong to the owner (a stream), not to the job. A stream that launches its next kernel while its epoch lasts
// goes on with it. A stream that pauses keeps the rest of its epoch for its next turn.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "sched/temporal/makers.h"

namespace gpuctl::sched {

namespace {
// T would be 0 where evictions cost nothing. One eviction of the measured 66 us fits into this.
constexpr Time kLeastEpoch = std::chrono::microseconds{100};
constexpr std::size_t kIdleAccounts = 64;  // idle owners remembered, beside as many as have jobs

class Ffs : public JobPolicy {
 public:
  explicit Ffs(double max_overhead) : max_overhead_(max_overhead) {}

  void arrived(Job& job, Time) override {
    const auto [at, added] = accounts_.try_emplace(job.owner);
    if (added) at->second.turn = ++last_turn_;
    if (at->second.jobs++ == 0) ++busy_;
    job.mark[0] = reinterpret_cast<std::intptr_t>(&at->second);
    if (accounts_.size() > 2 * busy_ + kIdleAccounts) forget_idle();
  }
  void left(const Job& job, Time now) override {
    Account& account = account_of(job);
    if (job.holds()) spend(account, now - std::max(job.since, account.from));
    if (--account.jobs == 0) --busy_;
  }
  void slice_over(Job& job, Time now) override {
    Account& account = account_of(job);
    account.from = now;
    spend(account, account.left);
  }
  void plan(const View& view, Plan& plan) override {
    std::uint32_t next = view.leader;
    if (next == kNoJob) {
      next = 0;
      std::int64_t first = account_of(view.jobs[0]).turn;
      for (std::uint32_t i = 1; i < view.jobs.size(); ++i) {
        const std::int64_t turn = account_of(view.jobs[i]).turn;
        if (turn < first || (turn == first && view.jobs[i].sequence < view.jobs[next].sequence)) next = i, first = turn;
      }
    }
    Account& account = account_of(view.jobs[next]);
    if (account.left <= Time{0}) account.left = epoch(view, view.jobs[next].weight);
    plan.run(next, view.capacity, account.left);
  }

 private:
  struct Account {
    std::int64_t turn = 0;  ///< the owner with the least is next
    Time left{};            ///< of its epoch; 0: not begun
    Time from{};            ///< time used before this instant does not count
    std::uint32_t jobs = 0;
  };

  /// The account is looked up once, when the job arrives: the map never moves an account and never erases one with
  /// jobs.
  static Account& account_of(const Job& job) { return *reinterpret_cast<Account*>(job.mark[0]); }

  void spend(Account& account, Time used) {
    account.left -= used;
    if (account.left > Time{0}) return;
    account.left = Time{0};
    account.turn = ++last_turn_;
  }
  Time epoch(const View& view, std::uint32_t weight) const {
    double overheads = 0, weights = 0;
    for (const Job& job : view.jobs) overheads += static_cast<double>(job.eviction.count()), weights += job.weight;
    return std::max(Time{std::llround(overheads / (max_overhead_ * weights) * weight)}, kLeastEpoch);
  }
  void forget_idle() {
    std::erase_if(accounts_, [](const auto& entry) { return entry.second.jobs == 0; });
  }

  double max_overhead_;
  std::int64_t last_turn_ = 0;
  std::size_t busy_ = 0;
  std::unordered_map<std::uint64_t, Account> accounts_;
};
}  // namespace

MadePolicy make_ffs(const PolicyInputs& inputs) {
  OptionReader options(inputs);
  const double max_overhead = options.number("max_overhead", 0.1, 0.001, 1);  // 10 %: as FLEP 6.3.3
  return finish_policy<Ffs>(options, max_overhead);
}

}  // namespace gpuctl::sched
