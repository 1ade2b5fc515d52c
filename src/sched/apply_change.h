#pragma once

#include "sched/slice.h"

namespace gpuctl::sched {

/// `slice` with `change` applied, or what is wrong with the first bad field. Checks each value by itself, and reserve
/// against max. SliceTree checks what depends on the rest of the tree.
SliceResult<Slice> apply_change(const Slice& slice, const SliceChange& change);

}  // namespace gpuctl::sched
