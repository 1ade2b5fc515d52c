// Refuses kernels whose blocks may wait for one another: they need all blocks resident at once.
//
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

inline constexpr char kMayWaitForBlock[] =
    "a loop may wait for another block (it reads global memory again until another block has written)";

/// Notes in the kernel, and in its report, whether its blocks may wait. The pass refuses it then.
void find_waiting_blocks(Kernel& kernel);
Refused refuse_waiting_blocks(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
