// Lets threads that returned early take part in the barriers of the threads that go on.
//
// The hardware takes a thread that exits out of the count of barrier 0. The threads of a worker do not exit at the end
// of a block-task, so finished threads must keep coming to the barrier until all are finished. So each block-wide
// barrier becomes a call of gpuslice_meet, a barrier that counts the finished threads that come to it. Live threads
// pass 0 in the place of bar.sync 0. Finished threads pass 1, in a loop at the end of the block-task
// (wrap_in_claim_loop); they leave the loop when the count equals the number of threads of the block.
//
// Most blocks have no thread that returns early. Suppose each thread returns before all barriers or comes to all of
// them, and split_early_return could not give such blocks a body of their own. Then the first barrier tells whether a
// thread returned: if none is finished then, none will be at a later barrier. So all later barriers, and the one at the
// end of the block-task, are plain bar.sync 0 (%gpuslice_plain, which has the same value in all threads of the block).
//
// gpuslice_meet is a function so that all lanes of a warp meet at one instruction, wherever they come from. The
// hardware counts whole warps at a barrier. Lanes of one warp that come to different barrier instructions, the
// unaligned `barrier.red` of PTX included, did not find each other there (H200, driver 580: illegal addresses). Inside
// the function, bar.warp.sync gathers the lanes of the warp, none of which has exited, and an aligned barrier follows.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

/// Whether the barriers of the entry's body become plain after a first barrier without finished threads.
inline bool skips_joining(const Kernel& kernel) {
  return kernel.report.returns_only_first && !kernel.plain_body;
}

Refused join_finished_threads(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
