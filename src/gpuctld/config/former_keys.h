// What became of the keys that [daemon] had and has no more. They are accepted for one release, each with a note.
#pragma once

#include <array>
#include <string_view>

namespace gpuctl::daemon {

struct FormerKey {
  std::string_view name;
  /// What the note says. Empty: the key of that name in [lab] took its place, and is set.
  std::string_view gone = {};
};

inline constexpr std::array kFormerKeys{
    FormerKey{"latency_target_us"},
    FormerKey{"block_target_us"},
    FormerKey{"lease_ms"},
    FormerKey{"settled_ahead_ms"},
    FormerKey{"reserve_by_parts"},
    FormerKey{"placement", "each program has SMs of its own"},
    FormerKey{"second_time_slice_us"},
    FormerKey{"worker_time_us", "workers work until nothing is left or their SM is taken away"},
    FormerKey{"always_end_workers", "workers work until nothing is left or their SM is taken away"},
};

}  // namespace gpuctl::daemon
