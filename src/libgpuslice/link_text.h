// Compiling without loading: by the driver's linker, which takes one text and gives machine code.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "libgpuslice/image.h"

namespace gpuslice {

/// What the driver makes of rewritten text for the device of the current context, with limits for registers where the
/// persistent forms of `kernels` should have any (register_limit.h). `max_registers`: 0 = none. Any thread; takes as
/// long as compiling does, once or twice. The error is one line.
gpuctl::Result<std::string> link_text(const std::string& text, const std::vector<ImageKernel>& kernels,
                                      int max_registers);

}  // namespace gpuslice
