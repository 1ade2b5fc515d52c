// Which branches the threads of one block may take differently.
#pragma once

#include <set>
#include <string>

#include "ptx/taint.h"

namespace gpuctl::ptx {

/// Taint of `flow`, of `function`: a register is tainted when threads of one block may see different values in it, a
/// branch when they may part there. Uniform are constants, the kernel's own parameters, %ctaid and the sizes of block
/// and grid, read-only memory at uniform addresses, results of block-wide reductions, and what is computed from such.
/// The parameters of a called function count as different.
Taint find_divergence(const Function& function, const Flow& flow);

}  // namespace gpuctl::ptx
