// What outlives launches. A policy that gives each program its part of the time keeps an account for each owner of
// jobs, so that a program with short launches has as much as one with long ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "sched/temporal/job.h"

namespace gpuctl::sched {

/// Accounts by Job::owner, which Job::mark[0] refers to. Owners without jobs are remembered too, until there are many.
template <class Account>
class Owners {
 public:
  static Account& of(const Job& job) { return entry_of(job).account; }

  /// Before of(job), when the job arrives. True if the owner is not remembered; then its account is empty.
  bool arrived(Job& job) {
    if (entries_.size() > 2 * busy_ + kIdle) std::erase_if(entries_, [](const auto& e) { return e.second.jobs == 0; });
    const auto [at, added] = entries_.try_emplace(job.owner);
    if (at->second.jobs++ == 0) ++busy_;
    job.mark[0] = reinterpret_cast<std::intptr_t>(&at->second);  // the map never moves an entry
    return added;
  }
  void left(const Job& job) {
    if (--entry_of(job).jobs == 0) --busy_;
  }

 private:
  static constexpr std::size_t kIdle = 64;
  struct Entry {
    Account account{};
    std::uint32_t jobs = 0;
  };
  static Entry& entry_of(const Job& job) { return *reinterpret_cast<Entry*>(job.mark[0]); }

  std::unordered_map<std::uint64_t, Entry> entries_;
  std::size_t busy_ = 0;  ///< owners with jobs
};

/// How long an owner may go on. Its next launch goes on with what the one before it has left.
struct Allowance {
  Time left{};  ///< 0: its turn has not begun
  Time from{};  ///< what was used before does not count

  Time begin(Time whole) { return left > Time{0} ? left : left = whole; }
  void end(Time now) { left = Time{0}, from = now; }
  /// The job is gone. True if the turn is over.
  bool spend(const Job& job, Time now) {
    if (left == Time{0} || !job.holds()) return false;
    left = std::max(left - (now - std::max(job.since, from)), Time{0});
    from = now;
    return left == Time{0};
  }
};

/// The launches of an owner between two pauses, in which it has nothing to run and none is expected: what FRS calls an
/// application. Old ones are forgotten by and by. Beside what is still expected they must count, or a long application
/// would never seem to be slowed down.
struct Burst {
  Time turnaround{}, alone{};  ///< of the launches that ended
  Time ended = kNever;         ///< the latest of them
  bool goes_on = false;        ///< more was expected behind that one

  void arrived(Time now) {
    if (now != ended && !goes_on) *this = {};
  }
  void left(const Job& job, Time now) {
    turnaround += now - job.arrived, alone += job.predicted - job.behind;
    for (const Time remembered = std::max(kRemembered, kRememberedOfRest * job.behind); turnaround > remembered;
         turnaround /= 2)
      alone /= 2;
    ended = now;
    goes_on = job.behind > Time{0};
  }

 private:
  static constexpr Time kRemembered = std::chrono::milliseconds{100};
  static constexpr int kRememberedOfRest = 16;  ///< times what is expected
};

}  // namespace gpuctl::sched
