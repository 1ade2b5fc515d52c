// Gives each register of a function a name of its own.
#pragma once

#include <optional>

#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

/// The analyses know a register by its name. But `{ .reg .pred p; ... }` inside a function, as inline assembly and the
/// compiler's own sequences have it, declares another `p`, for that scope alone. The result is the module with such
/// registers renamed, and declared with the function's others. Nothing if no function of the module has any.
std::optional<Module> with_distinct_registers(const Module& module);

}  // namespace gpuctl::ptx
