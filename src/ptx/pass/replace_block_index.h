// Makes %ctaid and %nctaid, in the entry and in what it calls, registers that hold the values of the original grid.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused replace_block_index(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
