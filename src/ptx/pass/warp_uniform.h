// Which values all lanes of a warp agree on, if the block's x size is a multiple of 32 and the grid has fewer than 2^31
// threads in x: what is computed from the number of the warp. `(ctaid.x * ntid.x + tid.x) / 32` is one.
#pragma once

#include <string>

#include "ptx/flow.h"
#include "ptx/taint.h"

namespace gpuctl::ptx::pass {

/// The instruction that alone writes a register, whatever happens; null when there are several, or none.
const Instruction* only_write(const Flow& flow, const std::string& name);

/// Whether the lanes agree on that register. `divergence`: find_divergence of the same function.
bool is_warp_uniform(const Flow& flow, const Taint& divergence, const std::string& name);

}  // namespace gpuctl::ptx::pass
