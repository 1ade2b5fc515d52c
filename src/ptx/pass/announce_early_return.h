// Has the block find out at the branch that decides who returns early whether anybody does.
//
// Where one branch, which all threads of the block come to before any barrier, decides who returns (the usual bounds check),
// a block-wide OR of its predicate in front of it tells all threads whether this block-task needs meetings of
// finished and live threads (join_finished_threads). Nearly all do not, and then their barriers stay plain.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused announce_early_return(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
