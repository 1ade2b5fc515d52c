// A job is what a temporal policy schedules: the outstanding GPU work of a client on one device, its head launch first.
// It keeps the times that FLEP keeps per kernel (5.1) and the states of EffiSha's kernels (6.1).
#pragma once

#include <cstdint>
#include <string_view>

#include "sched/capsm.h"
#include "sched/instants.h"

namespace gpuctl::sched {

using JobId = std::uint64_t;

/// EffiSha's states. A job is known from READY on; PREP, the time before the launch call, has no counterpart here.
enum class JobState : std::uint8_t {
  ready,     ///< waits; may not use the device
  to_run,    ///< was given SMs; holds none yet
  running,   ///< holds SMs
  to_evict,  ///< must give all its SMs back; still holds some
  done,      ///< complete, or unknown
};
std::string_view to_string(JobState state);

/// What is known when a job arrives.
struct Arrival {
  JobId id = 0;
  std::uint64_t owner = 0;   ///< the client; fair shares are kept per owner, across its jobs
  std::uint32_t kernel = 0;  ///< names a time curve, for policies that use curves
  std::uint32_t slice = 0;   ///< index into PolicyInputs::slices, for policies that know reserves
  std::int32_t priority = 0;
  std::uint32_t weight = 1;  ///< at least 1
  CapSM need{};              ///< the most it can fill; 0 counts as 1
  Time predicted{};          ///< duration alone on the whole device; less than 1 ns counts as 1 ns
  Time eviction{};           ///< predicted cost of evicting it once
  Time behind{};             ///< the part of `predicted` that is for later launches of its burst, each of them a job
};

/// One job in the table of a Scheduler. Policies read all of it and write `mark` alone.
/// A decision reads some fields of every job, so a job is two cache lines: the times in one and the rest in the other.
struct alignas(64) Job {
  JobId id = 0;
  std::uint64_t owner = 0;
  Time arrived{};
  Time predicted{};            ///< T_e: fixed once known
  Time remaining{};            ///< T_r: alone on the whole device
  Time waited{};               ///< T_w up to `since`
  Time since{};                ///< when it last started or stopped holding SMs
  Time eviction{};             ///< O_i
  std::int64_t mark[2]{};      ///< two words for the policy; 0 when the job arrives or the policy changes
  std::uint32_t sequence = 0;  ///< counts arrivals; decides among equals
  std::uint32_t kernel = 0;
  std::uint32_t slice = 0;
  std::int32_t priority = 0;
  std::uint32_t weight = 1;
  CapSM need{1};
  CapSM granted{};
  CapSM planned{};              ///< scratch of Scheduler::decide
  std::uint32_t evictions = 0;  ///< how often it lost all its SMs
  JobState state = JobState::ready;
  bool tail = false;  ///< all its block-tasks are claimed: it cannot use more SMs nor be evicted
  Time behind{};      ///< Arrival::behind

  bool holds() const { return state == JobState::running || state == JobState::to_evict; }
  /// T_w at `now`.
  Time waited_at(Time now) const { return holds() ? waited : waited + (now - since); }
  /// FRS (1): what its normalized turnaround would be if it ran from `now` to its end without a pause.
  double slowdown(Time now) const {
    return static_cast<double>((now - arrived + remaining).count()) / static_cast<double>(predicted.count());
  }
};

}  // namespace gpuctl::sched
