// One device of a client, as the daemon knows it: what the client reports, what its page says, and its place under a
// policy for jobs.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "gpuctld/accounts/work_meter.h"
#include "gpuctld/clients/grant_history.h"
#include "gpuctld/clients/held_capsm.h"
#include "gpuctld/clients/in_force.h"
#include "gpuctld/clients/launch_rate.h"
#include "gpuctld/clients/leaving_times.h"
#include "ipc/stub.h"
#include "sched/shares/turns.h"
#include "sched/temporal/burst_work.h"

namespace gpuctl::daemon {

class JobQueue;

/// What a policy for jobs schedules for a client on a device: the client's oldest outstanding launch.
struct ClientJob {
  std::uint64_t id = 0;                  ///< of the job; 0: nothing is outstanding
  std::uint64_t launch = 0;              ///< ipc::Head::launch
  std::chrono::nanoseconds takes{};      ///< as predicted, alone on the whole device
  std::chrono::nanoseconds behind{};     ///< what its burst is expected to do after it
  std::uint32_t claimed = 0;             ///< block-tasks claimed, as last told to the policy
  std::chrono::nanoseconds unclaimed{};  ///< time that those not claimed then take, on the whole device
  std::chrono::nanoseconds ran{};        ///< time it ran, converted to time with all the SMs it can use
  std::uint64_t seen_ns = 0;             ///< instant up to which `ran` counts
  bool inherits = false;                 ///< its client had a grant already when it came
  std::uint64_t given_ns = 0;            ///< since when its client has a grant; 0: it has none
  bool tail = false;                     ///< all its block-tasks are claimed: it runs to its end even without a grant
  bool original = false;                 ///< ipc::Head::original: its progress is not known
  bool known = true;                     ///< there is a prediction for its kernel
  bool operator==(const ClientJob&) const = default;
};

/// What a client's page says of one device beside the grant: the words of ipc::Grant, and some of ipc::Stub.
struct Terms {
  std::int32_t priority = 0;
  ipc::PriorityBand band;
  std::uint32_t time_slice_us = 0;
  std::optional<std::uint64_t> memory_max;  ///< bytes; none: nothing limits it
  bool memory_high = false;                 ///< its allocations may have to wait, so it asks
  std::uint32_t jobs = ipc::kNoJobs;
  std::uint32_t reserve = 0;
  std::uint32_t first = 0;
  std::uint32_t guaranteed = 0;
  InForce in_force = InForce::nothing;
  ipc::Mode mode = ipc::Mode::workers;
  bool settled = false;          ///< ipc::kSettled
  bool alone = false;            ///< ipc::kAlone
  bool reports_work = false;     ///< ipc::kReportWork
  bool held = false;             ///< ipc::kHeld
  std::uint32_t common_sms = 0;  ///< SMs that it has in common with others; 0: none

  std::uint32_t flags() const;
  bool operator==(const Terms&) const = default;
};

/// What a client reports about a device, as last read and within what is possible.
struct ReportedUsage {
  std::uint32_t demand = 0;    ///< CapSM
  std::uint32_t holding = 0;   ///< CapSM
  std::uint32_t original = 0;  ///< CapSM, of launches in original form that have begun
  std::uint32_t outstanding = 0;
  std::uint64_t launches = 0;
  LaunchRate rate;                   ///< of `launches`
  bool often = false;                ///< launches_often() (grants/time_slices.h), as last found
  std::uint64_t work_ns = 0;         ///< when it was last seen to have something to run or to have launched something
  std::uint64_t last_done_ns = 0;    ///< end of the latest launch that it reported
  bool faulted = false;              ///< its context is broken: what the page says of its work does not count
  std::uint32_t faulted_demand = 0;  ///< what the page said then; another demand ends the fault

  bool busy() const { return demand != 0 || outstanding != 0; }
};

/// What the daemon's file says that a client may have of a device (restart/holdings.h).
struct Promise {
  std::uint32_t sms = 0;     ///< CapSM that it may be using at most
  std::uint64_t memory = 0;  ///< bytes, where its memory is limited
  bool operator==(const Promise&) const = default;
};

/// What a client's page says of a device, and whether the client obeys.
struct WrittenGrant {
  /// The grant: what was decided, except in a handover, in a storm, or while nothing is in force.
  std::uint32_t written = 0;
  std::uint32_t had = 0;  ///< the latest that was not 0
  std::uint32_t idle = 0;
  std::uint32_t epoch = 0;  ///< the daemon's own copy, because the client can write to the page
  Terms terms;
  bool unannounced = false;  ///< the client was not yet woken for what changed in `terms`
  HeldCapsm held;
  LeavingTimes leaving;
  GrantHistory history;  ///< of `written`, without what is taken from a job's tail
  bool disobeying = false;
  std::uint64_t obeyed_ns = 0;  ///< when it was last seen to hold no more than its grant
  std::uint32_t inherited = 0;  ///< Client::inherit(): it may be using this; 0: nothing, or it follows this daemon
  /// What it may be using is what an earlier daemon recorded, which can be more than it had.
  bool doubtful = false;
  std::uint64_t inherited_memory = 0;  ///< bytes that it may hold by what an earlier daemon granted
  std::uint64_t inherited_until_ns = 0;
  Promise recorded;   ///< is in the file
  Promise to_record;  ///< is to be in the file before anything more than `recorded` is promised

  /// The most that it may be using while it is busy.
  std::uint32_t may_use() const { return std::max(written, held.most()); }
};

/// A client's place under a policy for jobs.
struct PlaceInQueue {
  JobQueue* queue = nullptr;  ///< in which it takes turns; null: no policy for jobs
  ClientJob job;
  sched::BurstWork burst;
  std::uint32_t admitted = ipc::kUnlimited;  ///< the most CapSM that its policy for jobs lets it have
  /// The fewest CapSM that it is to have while it has work, which may be more than this work fills; 0: what it fills.
  std::uint32_t spread = 0;
  std::uint32_t wanted_jobs = ipc::kNoJobs;  ///< Terms::jobs, as decided
};

struct ClientSlot : ReportedUsage, WrittenGrant, PlaceInQueue {
  int device = -1;            ///< the daemon's index, -1: not managed
  std::uint32_t mps_sms = 0;  ///< to so many SMs MPS keeps the program until it ends; 0: it does not
  std::uint32_t decided = 0;  ///< CapSM
  bool latest = false;        ///< it had demand when any client of the device last had
  sched::TurnAccount account;
  std::uint64_t watched = 0;  ///< number of the program on this device in sched::Fairness; 0: none yet
  WorkMeter meter;
  double metered_sm_s = 0;     ///< WorkMeter::sm_s() as its slices were last charged for it
  std::uint64_t promised = 0;  ///< bytes of memory it was last granted, or reported to hold; 0: nothing limits it

  /// What it may be using that others cannot have. While nothing is in force for it, what it leaves is for nobody.
  std::uint32_t counts() const { return terms.in_force == InForce::nothing ? decided : may_use(); }

  /// The most SMs that it can use of a device of so many.
  std::uint32_t most_of(std::uint32_t sms) const { return mps_sms == 0 ? sms : std::min(mps_sms, sms); }

  /// Its demand, as its policy for jobs wants it.
  std::uint32_t admitted_demand() const { return demand == 0 ? 0 : std::min(std::max(demand, spread), admitted); }
};

}  // namespace gpuctl::daemon
