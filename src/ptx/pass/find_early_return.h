// Finds out whether threads may return while other threads of their block go on to a barrier. Refuses kernels in which
// an instruction of a warp could wait for lanes that have returned.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused find_early_return(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
