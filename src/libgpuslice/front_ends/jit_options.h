// What the program's options for the driver's compiler mean for code that is made elsewhere.
#pragma once

#include <cuda.h>

#include <optional>

namespace gpuslice {

/// The limit on registers among the options, 0 for none; nothing if one of them shapes the code otherwise. Those that
/// say where messages go, or how images are chosen, do not.
std::optional<int> register_limit_of(unsigned count, const CUjit_option* options, void* const* values);

}  // namespace gpuslice
