// A policy decides how a node of the slice tree divides what it was given: the SMs among its children, which run side
// by side, or the time of the GPU among the jobs below it (temporal/job_policy.h). A policy is one file in policy/ and
// one row of the table in policy/table.cc. Configuration, CLI and manual take its name and help from there.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/capsm.h"
#include "sched/shares/water_fill.h"

namespace gpuctl::sched {

/// What one child asks of its parent on one device. The floors never add up to more than what is divided.
struct Claim {
  CapSM floor{};  ///< what it gets whatever the others want: the reserve in force
  CapSM want{};   ///< what it can use or must keep free, within its max; never below floor
  std::uint32_t weight = 1;
  std::int32_t priority = 0;
};

class JobPolicy;
struct PolicyInputs;

struct Policy {
  std::string_view name;
  std::string_view help;     ///< one line for `gpuctl create-slice --help` and gpuctl.toml(5)
  std::string_view options;  ///< "quantum_ms=1 ...", with the defaults; empty: none

  /// Null: the policy is for jobs only.
  /// Finds what each claim is due of `capacity`, in `dues` (as long as `claims`): at least its floor and at most its
  /// want. Turns make whole SMs of it. Pure; `filler` is scratch space.
  void (*divide)(std::span<const Claim> claims, Due capacity, WaterFiller& filler, std::span<Due> dues);

  /// Makes the policy for jobs. For a policy that divides SMs among children only the simulator does so.
  Result<std::unique_ptr<JobPolicy>> (*make)(const PolicyInputs& inputs);
};

/// All rows. The first is the default and the one that divides SMs.
std::span<const Policy> policies();

/// Those that administrators choose from; `help` says what each is for.
std::span<const Policy> offered_policies();
/// The others: accepted everywhere, to repeat the figures of papers.
std::span<const Policy> policies_of_papers();

/// Null when there is no policy of that name.
const Policy* find_policy(std::string_view name);

/// "share, ...; of papers: fcfs, ..." for error messages and help: what a slice can have, and make_job_policy can make.
std::string policy_names();

}  // namespace gpuctl::sched
