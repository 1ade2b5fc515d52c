// Gives the block-tasks in which nobody returns early a body of their own, with plain barriers.
//
// Where one branch, which all threads of the block come to before any barrier, decides who returns (the usual bounds
// check), each block-task finds out in front of it whether any thread does: by itself where that is possible
// (any_thread), else by a block-wide OR of its predicate, which is a barrier more. In most block-tasks none does: they
// go on in the plain body, which has neither that branch nor meetings of finished and live threads
// (join_finished_threads). From the first block-task where one does, the block goes on in the other body, which is the
// entry's, for what is left of its chunk: it begins that block-task again, which is possible when nothing in front of
// the branch can be told from outside.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused split_early_return(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
