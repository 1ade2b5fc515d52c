// What became of the keys that [daemon] had and has no more. They are accepted for one release, each with a note.
#pragma once

#include <array>
#include <string_view>

namespace gpuctl::daemon {

struct FormerKey {
  std::string_view name;
  std::string_view gone;  ///< what took its place, as the note says
};

inline constexpr std::array kFormerKeys{
    FormerKey{"worker_time_us", "workers work until nothing is left or their SM is taken away"},
    FormerKey{"always_end_workers", "workers work until nothing is left or their SM is taken away"},
};

}  // namespace gpuctl::daemon
