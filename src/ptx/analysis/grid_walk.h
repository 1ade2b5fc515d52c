// Whether a kernel is persistent already (EffiSha, section 5).
#pragma once

#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

/// True if the blocks of the kernel walk through the grid by themselves: a loop of it advances a register by the number
/// of blocks (%nctaid) or a multiple of it. False also if its flow is not understood. Loops of functions that it calls
/// do not count. A kernel that never reads %nctaid (GridReads) need not be asked.
bool walks_grid(const Function& kernel);

}  // namespace gpuctl::ptx
