// Which slices are active. A reserve in mode `active` is kept free while its slice is active, and lent while it is not.
// Pure.
#pragma once

#include <cstdint>
#include <span>

#include "sched/allocator.h"

namespace gpuctl::sched {

/// A client: its node, and when it last launched something or had something to run; 0: never.
struct Work {
  std::uint32_t node = 0;
  std::uint64_t last_ns = 0;
};

struct Activity {
  bool changed = false;  ///< some NodeInput::active has changed
  /// When the first of the active slices becomes inactive, if no client has work before then.
  std::uint64_t next_ns = UINT64_MAX;
};

/// Sets NodeInput::active. A slice is active until its hold has passed since the last work of a client in or below it.
/// A slice without a hold is never active. NodeInput::kept_with_parent makes it active when the one above is. A parent
/// precedes its children.
Activity mark_active(std::span<NodeInput> nodes, std::span<const Work> work, std::uint64_t now_ns);

}  // namespace gpuctl::sched
