// Refuses kernels that hold a construct no persistent kernel may have, or that leave no room for ours.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused refuse_unsupported(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
