// Lets threads that returned early take part in the barriers of those that go on.
//
// The hardware takes a thread that exits out of the count of barrier 0. A worker's threads do not exit, so those that are done
// must keep coming to the barrier until all are. Each block-wide barrier becomes barrier.red.popc, which counts the threads
// that bring a true predicate: live threads bring false at what was bar.sync 0, finished ones true in a loop
// at the end of the block-task (wrap_in_claim_loop), which they leave when the count is all threads of the block.
// The unaligned `barrier` is used because lanes of one warp meet there from different places.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused join_finished_threads(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
