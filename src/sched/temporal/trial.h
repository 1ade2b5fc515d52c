// A trial finds out whether programs that a policy runs side by side get on better if they are left to the GPU, whose
// own scheduler places their blocks. No curve of one kernel tells: it depends on what two of them need at the same
// time. So each way is tried for a while and the better one is kept.
//
// A way is better if it makes the product of the programs' rates greater, in launches per second: then the factors by
// which it changes the rates have a geometric mean above 1. How quick a program is alone need not be known. Launches
// that differ much from each other make that inexact; several are counted of each program, else the policy stays.
//
// Pure: time and counts are arguments. SiM (adaptive simultaneous multi-tenancy) compares only with one after the other
// and does not have this; on a GPU that places the blocks of two programs itself the policy can lose to it
// (docs/design/jobs.md, "sim: curves learnt while programs run").
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sched/temporal/job.h"

namespace gpuctl::sched {

/// A program with work, and the launches that were counted of it so far. The count may be old by kCountedEvery.
struct CountedProgram {
  std::uint64_t id = 0;
  std::uint64_t launches = 0;
};

/// Not thread-safe.
class Trial {
 public:
  /// After a change of way that long is not measured: launches of the other way end meanwhile.
  static constexpr Time kSettles = std::chrono::milliseconds{100};
  /// A way is measured for so long, or longer until kEnough launches of each program were counted, up to kLongest.
  static constexpr Time kMeasures = std::chrono::milliseconds{500};
  static constexpr Time kLongest = std::chrono::seconds{2};
  static constexpr std::uint64_t kEnough = 8;
  /// What was found is kept that long. Each time the same is found again, twice as long, up to kMostKept.
  static constexpr Time kKept = std::chrono::seconds{10};
  static constexpr Time kMostKept = std::chrono::seconds{160};
  /// While a way is measured, update() is due that often. In between a change of the counts would be seen late.
  static constexpr Time kCountedEvery = std::chrono::milliseconds{20};
  /// Among more programs than this the policy stays.
  static constexpr std::size_t kMostPrograms = 8;

  /// `programs`: those with work now, ascending by id. True if left_to_gpu() changed. With fewer than two programs
  /// nothing is tried and everything stays as it is.
  bool update(std::span<const CountedProgram> programs, Time now);
  /// Begins with the policy.
  bool left_to_gpu() const { return to_gpu_; }
  /// When update() is due if no program begins or ends its work before; kNever: then only.
  Time again() const { return again_; }

 private:
  enum class Phase : std::uint8_t { idle, settling, measuring, kept };
  struct Found {
    bool to_gpu = false;
    Time kept = kKept;
  };
  /// One program while a way is measured. A rate is that between two changes of its count, so neither the time before
  /// the first nor that after the last makes it wrong.
  struct Measured {
    std::uint64_t seen = 0;                ///< latest count
    std::uint64_t first = 0, last = 0;     ///< counts at the first and the latest change
    Time first_at = kNever, last_at = {};  ///< kNever: it did not change yet
    double rate[2] = {};                   ///< launches per second: of the policy, of the GPU; 0: not known
  };

  bool same(std::span<const CountedProgram> programs) const;
  bool begin(std::span<const CountedProgram> programs, Time now);
  void measure(Time now);
  bool measured(Time now);
  bool conclude(Time now);
  bool go(bool to_gpu, Time now);
  bool keep(const Found& found, Time now);

  Phase phase_ = Phase::idle;
  bool to_gpu_ = false;
  bool second_ = false;  ///< the other way was measured already
  Time since_{};         ///< of the phase
  Time again_ = kNever;
  std::vector<Measured> programs_;
  std::vector<std::uint64_t> ids_;                     ///< of programs_
  std::map<std::vector<std::uint64_t>, Found> found_;  ///< by programs that were there together
};

}  // namespace gpuctl::sched
