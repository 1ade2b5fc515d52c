// Puts the body into the loop that claims block-tasks: the worker of persistent_abi.h.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused wrap_in_claim_loop(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
