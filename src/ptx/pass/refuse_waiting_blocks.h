// Refuses kernels whose blocks may wait for one another: they need all blocks resident at once.
//
// A block waits in a loop whose exit depends on reads of memory shared with other blocks: volatile, relaxed, acquire or
// atomic reads of global memory. One such loop is harmless and common, the lock-free update. It reads a value, computes
// a new one, and tries compare-and-swap until no other thread has changed the value in between. A failed try means that
// another thread succeeded, so the loop needs no block that is not running.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused refuse_waiting_blocks(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
