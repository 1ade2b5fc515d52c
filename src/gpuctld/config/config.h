// The configuration: /etc/gpuctl.toml and its drop-ins (gpuctl.toml(5)).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slicefile/configured_slice.h"

namespace gpuctl::daemon {

enum class OnDisobey { report, stop };

/// Who starts MPS.
enum class MpsChoice {
  unset,   ///< as `manage` where programs run side by side by MPS alone, else as `leave`
  manage,  ///< the daemon, where nobody else has (host/mps_places.h)
  leave,   ///< the administrator
};

/// What sections [daemon] and [lab] say. Scheduler holds the one that is in force.
struct DaemonOptions {
  /// How much longer than it lately took (LeavingTimes) a client may take to leave SMs. Then others get them.
  std::chrono::milliseconds evict_deadline{50};
  /// The most that a client may be seen to take: after the deadline and this it disobeys.
  std::chrono::milliseconds longest_block_task{1000};
  OnDisobey on_disobey = OnDisobey::report;
  /// Kernels keep their preemptible form even if nothing in force needs it (in_force.h).
  bool always_preemptible = false;
  bool time_slices = true;  ///< the daemon sets how long turns on the GPU last (time_slices.h)
  MpsChoice mps = MpsChoice::unset;
  /// For whom the library is mandatory: a list for sched::mandatory_for; "": for nobody.
  std::string mandatory;
  /// Where programs are that name no slice and whom no slice names: a path; the root as long as there is no such slice.
  std::string default_slice = "/";            ///< "": none
  bool software_gpu = false;                  ///< manage the software GPU instead of NVIDIA GPUs
  std::optional<std::uint32_t> socket_mode;   ///< file mode; absent: 0666, 0600 for a private instance
  std::optional<std::uint32_t> socket_group;  ///< gid; absent: the group with which it is created

  // [lab]: bench/lab.md
  std::chrono::microseconds latency_target{50};  ///< kernels shorter than this keep their original form
  std::chrono::microseconds block_target{20};    ///< what a worker claims at once should take no longer
  std::chrono::milliseconds lease{2000};         ///< without a sign of life for so long a client has no demand
  /// How far ahead of the GPU a program may be with kernels that cannot be evicted, where its grant is settled.
  std::chrono::milliseconds settled_ahead{200};
  /// Beside kept reserves alone kernels keep their original form, confined to the SMs that the reserves leave.
  bool reserve_by_parts = true;
  std::chrono::microseconds second_time_slice{0};  ///< of programs that come second; 0: chosen by what they do

  bool operator==(const DaemonOptions&) const = default;
};
inline const DaemonOptions kDefaultOptions{};

/// One [[device]]. Exactly one of uuid and index is set.
struct DeviceSelector {
  std::string uuid;
  int index = -1;
  std::string where;  ///< "file:line:column"
};

using slicefile::ConfiguredSlice;

struct Config {
  DaemonOptions daemon;
  std::vector<DeviceSelector> devices;  ///< empty: all
  std::vector<ConfiguredSlice> slices;  ///< parents first
};

/// What was read, or every problem found, one line each: "file:line:column: field: reason".
struct ConfigOutcome {
  Config config;
  std::vector<std::string> problems;  ///< if there are any, the config must not be used
  /// A line for each key or value that has moved or gone (former_keys.h, base/former_mode.h).
  std::vector<std::string> notes;
};

/// `documented`: [lab], which is for experiments, and keys and values that have moved or gone are problems.
enum class Accepted { all, documented };

/// Reads `file`, then FILE.d/*.toml in the order of their names. A later file overrides single keys of an earlier one.
/// A missing `file` is an error only if `required`. "" reads nothing and gives the defaults.
ConfigOutcome read_config(const std::string& file, bool required, Accepted accepted = Accepted::all);

/// A line for each link in a join. Where an administrator has the configuration read alone: whose path it is may keep
/// who follows it waiting.
std::vector<std::string> links_in_joins(const Config& config);

}  // namespace gpuctl::daemon
