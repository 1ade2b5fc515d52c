// What the program's options for the driver's compiler mean for code that is compiled elsewhere.
#pragma once

#include <cuda.h>

#include <optional>

namespace gpuslice {

/// The register limit among the options; 0: none. Nothing if another option affects the code. Options for messages, or
/// for the choice of images, do not.
std::optional<int> register_limit_of(unsigned count, const CUjit_option* options, void* const* values);

}  // namespace gpuslice
