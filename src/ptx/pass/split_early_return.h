// Gives the block-tasks in which no thread returns early a body of their own, with plain barriers.
//
// The pass applies where one branch decides which threads return (the usual bounds check), and all threads of the block
// come to it before any barrier. In front of that branch, each block-task finds out whether any thread returns: each
// thread decides alone where that is possible (any_thread); elsewhere a block-wide OR of the predicate decides, which
// costs one more barrier. In most block-tasks no thread returns. They go on in the plain body, which has neither that
// branch nor the barriers of finished and live threads (join_finished_threads). At the first block-task in which a
// thread returns, the block goes on in the other body, the entry's own, for the rest of its chunk. It begins that
// block-task again, which is possible only if nothing in front of the branch has an effect outside the thread.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused split_early_return(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
