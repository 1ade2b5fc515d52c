#pragma once

#include "sched/slice.h"

namespace gpuctl::sched {

/// `slice` with `change` applied, or what is wrong with the first bad field. Looks at each value by itself and at
/// reserve against max; what depends on the rest of the tree is SliceTree's.
SliceResult<Slice> apply_change(const Slice& slice, const SliceChange& change);

}  // namespace gpuctl::sched
