// The keys of sections [daemon] and [lab] of gpuctl.toml: one row each. Those of [daemon] are in the order of the
// manual page, and at most eleven.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <variant>

#include "gpuctld/config/config.h"
#include "ipc/stub.h"

namespace gpuctl::daemon {

struct DaemonKey {
  template <class T>
  using Member = T DaemonOptions::*;

  std::string_view name;
  /// The member that it sets. The default is that of DaemonOptions.
  std::variant<Member<std::chrono::microseconds>, Member<std::chrono::milliseconds>, Member<OnDisobey>,
               Member<MpsChoice>, Member<bool>, Member<std::string>, Member<std::optional<std::uint32_t>>>
      member;
  std::int64_t greatest = 0;  ///< of a duration, in its unit
  std::int64_t least = 1;     ///< the same
  bool group = false;         ///< the number is a group's; otherwise it is a file mode
  bool slice = false;         ///< the text is a slice's path; otherwise it is a list of whom it concerns
};

inline constexpr std::array kDaemonKeys{
    DaemonKey{"evict_deadline_ms", &DaemonOptions::evict_deadline, 60'000},
    DaemonKey{"longest_block_task_ms", &DaemonOptions::longest_block_task, 60'000},
    DaemonKey{"on_disobey", &DaemonOptions::on_disobey},
    DaemonKey{"mandatory", &DaemonOptions::mandatory},
    DaemonKey{.name = "default_slice", .member = &DaemonOptions::default_slice, .slice = true},
    DaemonKey{"always_preemptible", &DaemonOptions::always_preemptible},
    DaemonKey{"time_slices", &DaemonOptions::time_slices},
    DaemonKey{"mps", &DaemonOptions::mps},
    DaemonKey{"software_gpu", &DaemonOptions::software_gpu},
    DaemonKey{"socket_mode", &DaemonOptions::socket_mode},
    DaemonKey{.name = "socket_group", .member = &DaemonOptions::socket_group, .group = true},
};

/// Of section [lab], in the order of bench/lab.md.
inline constexpr std::array kLabKeys{
    DaemonKey{"latency_target_us", &DaemonOptions::latency_target, 1'000'000},
    DaemonKey{"block_target_us", &DaemonOptions::block_target, 1'000'000},
    DaemonKey{"lease_ms", &DaemonOptions::lease, 3'600'000},
    DaemonKey{"settled_ahead_ms", &DaemonOptions::settled_ahead, ipc::kMostSettledAheadMs},
    DaemonKey{"reserve_by_parts", &DaemonOptions::reserve_by_parts},
    DaemonKey{
        .name = "second_time_slice_us", .member = &DaemonOptions::second_time_slice, .greatest = 1'000'000, .least = 0},
};

}  // namespace gpuctl::daemon
