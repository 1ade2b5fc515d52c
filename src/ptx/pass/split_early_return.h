// Gives the block-tasks in which nobody returns early a body of their own, with plain barriers.
//
// Where one branch, which all threads of the block come to before any barrier, decides who returns (the usual bounds check),
// a block-wide OR of its predicate in front of it tells whether any thread does. In most block-tasks none does: they go on
// in the plain body, which has neither that branch nor meetings of finished and live threads (join_finished_threads). The
// others cross over to the same place of the other body, which is the entry's.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused split_early_return(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
