// A policy decides how a node of the slice tree divides what it was given among its children. One policy is one file
// in policy/ and one row of the table in policy/table.cc; names and help in configuration, CLI and manual come from
// there.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sched/capsm.h"
#include "sched/water_fill.h"

namespace gpuctl::sched {

/// What one child asks of its parent on one device. The sum of the floors never exceeds what is divided.
struct Claim {
  CapSM floor{};  ///< its share whatever the others want: the reserve in force
  CapSM want{};   ///< what it can use or has to keep free, within its max; never below floor
  std::uint32_t weight = 1;
  std::int32_t priority = 0;
};

struct Policy {
  std::string_view name;
  std::string_view help;  ///< one line for `gpuctl create-slice --help` and gpuctl.toml(5)

  /// Fills `given` (as long as `claims`): at least the floor and at most the want of each, in sum at most `capacity`.
  /// `turn` rotates who comes first when there is not enough for everybody. Pure; `filler` is scratch space.
  void (*divide)(std::span<const Claim> claims, CapSM capacity, std::uint64_t turn, WaterFiller& filler,
                 std::span<CapSM> given);
};

/// All rows, the default first.
std::span<const Policy> policies();

/// Null when there is no policy of that name.
const Policy* find_policy(std::string_view name);

/// "share, ..." for error messages and help.
std::string policy_names();

}  // namespace gpuctl::sched
