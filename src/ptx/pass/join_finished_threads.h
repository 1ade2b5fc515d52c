// Lets threads that returned early take part in the barriers of those that go on.
//
// The hardware takes a thread that exits out of the count of barrier 0. A worker's threads do not exit, so those that
// are done must keep coming to the barrier until all are. So each block-wide barrier becomes a call of gpuslice_meet, a
// barrier that counts the threads that come finished: live threads bring 0 where bar.sync 0 was, finished ones 1, in a
// loop at the end of the block-task (wrap_in_claim_loop) that they leave when the count is all threads of the block.
//
// Most blocks have no thread that returns early. Where a thread returns before all barriers or comes to all of them,
// and split_early_return could not give those blocks a body of their own, the first barrier tells whether one did: with
// none finished then, none will be at a later barrier, so all of them, and the end of the block-task, are plain
// bar.sync 0 (%gpuslice_plain, the same in all threads of the block).
//
// It is a function so that all lanes of a warp meet at one instruction, wherever they come from. The hardware counts
// whole warps at a barrier; lanes that come to different barrier instructions of one warp, the unaligned `barrier.red`
// of PTX included, did not find each other there (H200, driver 580: illegal addresses). Inside, bar.warp.sync gathers
// the lanes of the warp, none of which has exited, and an aligned barrier follows.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

/// Whether the barriers of the entry's body take that shortcut.
inline bool skips_joining(const Kernel& kernel) {
  return kernel.report.returns_only_first && !kernel.plain_body;
}

Refused join_finished_threads(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
