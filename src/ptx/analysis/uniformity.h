// Finds the branches at which threads of one block, or lanes of one warp, may diverge.
#pragma once

#include <set>
#include <string>

#include "ptx/analysis/definitions.h"
#include "ptx/analysis/taint.h"

namespace gpuctl::ptx {

/// The taint of `flow`, which belongs to `function`. A register is tainted if threads of one block may see different
/// values in it; a branch, if they may diverge there. These are uniform: constants, the kernel's own parameters,
/// %ctaid, the sizes of block and grid, read-only memory at uniform addresses, results of block-wide reductions, and
/// what is computed from uniform values. The parameters of a called function count as different.
Taint find_divergence(const Function& function, const Flow& flow);

/// The same for the lanes of one warp: results of votes in which all lanes take part are uniform too. Values that are
/// the same by the number of the warp count as different (warp_uniform.h).
Taint find_warp_divergence(const Function& function, const Flow& flow, const Definitions& definitions);

}  // namespace gpuctl::ptx
