// Gives a block of a subgrid the block index that the program's grid would have given it (subgrid_abi.h).
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

/// Puts the computation in front of the body. Comes after replace_block_index.
Refused number_subgrid(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
