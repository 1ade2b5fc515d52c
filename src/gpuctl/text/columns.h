// How many columns of a terminal a character takes.
#pragma once

#include <cstdint>

namespace gpuctl::cli {

/// 2 for what East Asian scripts write wide, and for symbols that are shown as pictures; else 1, also for marks that a
/// terminal shows over the character before them: so no line is longer than it is thought to be.
int columns_of(std::uint32_t code_point);

}  // namespace gpuctl::cli
