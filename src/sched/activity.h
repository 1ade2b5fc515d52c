// Which slices are active, for reserves in mode `active`: kept free while their slice is active, lent while it is not.
// Pure.
#pragma once

#include <cstdint>
#include <span>

#include "sched/allocator.h"

namespace gpuctl::sched {

/// A client: in which node, and when it last launched something or had something to run. 0: never.
struct Work {
  std::uint32_t node = 0;
  std::uint64_t last_ns = 0;
};

struct Activity {
  bool changed = false;  ///< some NodeInput::active is another than before
  /// When a slice that is active now stops being so, if nothing happens until then.
  std::uint64_t next_ns = UINT64_MAX;
};

/// Sets NodeInput::active: a slice is active while the last work of a client in it or below it is less than its own
/// hold ago. Slices without a hold never are. A parent stands before its children.
Activity mark_active(std::span<NodeInput> nodes, std::span<const Work> work, std::uint64_t now_ns);

}  // namespace gpuctl::sched
