// Moves the barrier between two block-tasks into the next block-task, as far as possible.
//
// A thread must not write shared memory for one block-task, or wait at one of its barriers, while another thread still
// reads what belongs to the block-task before. Instructions before the first such access, above all loads of global
// memory, need not wait: those of the next block-task run while the last threads of this one end, as they do where the
// hardware starts blocks. Every thread must come to the place exactly once in a block-task, so no thread may return
// before it.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

/// Puts the barrier into the body in which no thread returns early, if there is a place, and sets `meets_inside`.
Refused meet_late(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
