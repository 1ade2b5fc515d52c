// Refuses kernels that contain a construct that no persistent kernel may have, or that leave no room for the parameter
// and the shared words of the worker.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused refuse_unsupported(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
