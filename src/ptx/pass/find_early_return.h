// Finds out whether threads may return while others of their block go on to a barrier, and refuses kernels where the
// lanes that returned could be waited for by an instruction of their warp.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused find_early_return(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
