// Refuses kernels whose blocks may wait for one another: they need all blocks resident at once.
//
// A block waits in a loop that it leaves depending on what it reads of memory shared with other blocks: volatile,
// relaxed, acquire or atomic reads of global memory. One such loop is harmless and common: the lock-free update, which
// reads a value, computes a new one and tries compare-and-swap until nobody came in between. Each failed try of it
// means that another thread succeeded, so it needs no block that is not running.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused refuse_waiting_blocks(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
