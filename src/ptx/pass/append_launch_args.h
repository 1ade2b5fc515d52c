// Appends the LaunchArgs parameter and names the entry.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

Refused append_launch_args(Kernel& kernel);

}  // namespace gpuctl::ptx::pass
