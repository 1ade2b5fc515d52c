// Turns every ret and exit of the entry into a jump to the end of the block-task.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused replace_returns(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
