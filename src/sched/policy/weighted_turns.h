// Turns in proportion to weights, for policies that take owners by turns: the heaviest has a turn in each round, and
// one of half its weight in every second round. Where all weights are equal, each owner has a turn in each round. A
// turn goes on over the owner's launches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "sched/policy/owners.h"
#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {

class WeightedTurns {
 public:
  static constexpr std::int64_t kRound = 1024;

  struct Turn {
    std::int64_t round = 0;        ///< in which the owner has its turn; one round is kRound
    std::int64_t order = 0;        ///< among those of the same round, the first to be put there first
    std::int64_t rounds = kRound;  ///< dprr: so many after this one it has its next turn
    Allowance allowance;
  };
  static Turn& of(const Job& job) { return Owners<Turn>::of(job); }

  /// In the round `round`. True if the owner is new. Another one has its turn when it had it before, or now if that
  /// round is over.
  bool arrived(Job& job, std::int64_t round) {
    if (owners_.arrived(job)) return true;
    if (Turn& turn = of(job); turn.round < round) turn = {.round = round, .order = ++ordered_, .allowance = {}};
    return false;
  }
  /// True if that ends the owner's turn.
  bool left(const Job& job, Time now) {
    owners_.left(job);
    return of(job).allowance.spend(job, now);
  }
  /// The owner's next turn is as many rounds after the round `from` as its weight says: one for the heaviest. Weights
  /// are those at the next count().
  void put_behind(const Job& job, std::int64_t from) {
    of(job).round = from | kNotCounted;
    of(job).order = ++ordered_;
    any_ = true;
  }
  /// Before the round of any turn is read.
  void count(std::span<const Job> jobs) {
    if (!any_) return;
    any_ = false;
    std::int64_t heaviest = 1;
    for (const Job& job : jobs) heaviest = std::max<std::int64_t>(heaviest, job.weight);
    for (const Job& job : jobs)
      if (Turn& turn = of(job); (turn.round & kNotCounted) != 0)
        turn.round += rounds(heaviest, job.weight) - kNotCounted;
  }
  /// The first round from `round` on in which an owner has a turn; the next one if that is none. `jobs` is not empty.
  static std::int64_t round_after(std::int64_t round, std::span<const Job> jobs) {
    std::int64_t first = of(jobs[0]).round;
    for (const Job& job : jobs) first = std::min(first, of(job).round);
    return std::max(first, round + kRound);
  }

 private:
  static constexpr std::int64_t kNotCounted = 1;  // numbers of rounds are even
  /// A lighter owner has a turn in so many rounds all the same, so numbers of rounds last for years.
  static constexpr std::int64_t kMostRounds = std::int64_t{1} << 16;

  static std::int64_t rounds(std::int64_t heaviest, std::uint32_t weight) {
    return std::min(kRound * heaviest / weight, kRound * kMostRounds) & ~kNotCounted;
  }

  Owners<Turn> owners_;
  std::int64_t ordered_ = 0;
  bool any_ = false;
};

/// A policy by turns in which an owner who is new waits for the next round: otherwise new owners could prolong the
/// current one for ever. Who has had its turn is put behind the others.
class TurnPolicy : public JobPolicy {
 public:
  void arrived(Job& job, Time) override {
    if (turns_.arrived(job, round_)) turns_.put_behind(job, round_);
  }
  void left(const Job& job, Time now) override {
    if (turns_.left(job, now)) turns_.put_behind(job, WeightedTurns::of(job).round);
  }
  void slice_over(Job& job, Time now) override {
    WeightedTurns::of(job).allowance.end(now);
    turns_.put_behind(job, WeightedTurns::of(job).round);
  }

 protected:
  WeightedTurns turns_;
  std::int64_t round_ = 0;
};

}  // namespace gpuctl::sched
