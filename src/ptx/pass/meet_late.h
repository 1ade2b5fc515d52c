// Moves the meeting of a block's threads between two block-tasks into the next one, as far as it goes.
//
// What must not happen is that a thread writes shared memory for one block-task, or waits at one of its barriers, while
// another still reads what belongs to the one before. What comes before the first such instruction, loads of global
// memory above all, need not wait: the next block-task's come while the last threads of this one end, as they do where
// the hardware starts blocks. The place must be one to which every thread comes exactly once in a block-task, so nobody
// may return before it.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

/// Puts the meeting into the body in which nobody returns early, if there is one, and says so in `meets_inside`.
Refused meet_late(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
