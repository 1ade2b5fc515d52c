// Turns in proportion to weights, for policies that take jobs by turns: the heaviest job has a turn in each round, and
// one of half its weight in every second round. Where all weights are equal, each job has a turn in each round.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "sched/temporal/job.h"

namespace gpuctl::sched {

/// Keeps in Job::mark[0] in which round the job has its next turn; a round is kRound.
class WeightedTurns {
 public:
  static constexpr std::int64_t kRound = 1024;

  static std::int64_t next(const Job& job) { return job.mark[0]; }
  /// The job's next turn is as many rounds after the round `from` as its weight says: one for the heaviest job. Weights
  /// are those at the next count().
  void put_behind(Job& job, std::int64_t from) {
    job.mark[0] = from | kNotCounted;
    any_ = true;
  }
  /// Before next() of any job is read.
  void count(std::span<Job> jobs) {
    if (!any_) return;
    any_ = false;
    std::int64_t heaviest = 1;
    for (const Job& job : jobs) heaviest = std::max<std::int64_t>(heaviest, job.weight);
    for (Job& job : jobs)
      if ((job.mark[0] & kNotCounted) != 0) job.mark[0] += rounds(heaviest, job.weight) - kNotCounted;
  }
  /// The first round from `round` on in which a job has a turn; the next one if that is none. `jobs` is not empty.
  static std::int64_t round_after(std::int64_t round, std::span<const Job> jobs) {
    std::int64_t first = next(jobs[0]);
    for (const Job& job : jobs) first = std::min(first, next(job));
    return std::max(first, round + kRound);
  }

 private:
  static constexpr std::int64_t kNotCounted = 1;  // numbers of rounds are even
  /// A lighter job has a turn in so many rounds all the same, so `mark` lasts for years.
  static constexpr std::int64_t kMostRounds = std::int64_t{1} << 16;

  static std::int64_t rounds(std::int64_t heaviest, std::uint32_t weight) {
    return std::min(kRound * heaviest / weight, kRound * kMostRounds) & ~kNotCounted;
  }

  bool any_ = false;
};

}  // namespace gpuctl::sched
