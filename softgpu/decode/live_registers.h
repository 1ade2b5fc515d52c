// Estimates how many registers an assembler would need: compilers give every PTX value its own name.
#pragma once

#include <vector>

#include "softgpu/engine/instruction.h"

namespace gpuctl::softgpu::engine {

/// A declared register and the number of 32-bit registers it takes.
struct RegisterUse {
  OperandRef ref;
  std::uint32_t words;
};

/// The greatest number of 32-bit registers live at one instruction of a function (branch targets relative to its first
/// instruction). An estimate: a value lives from its first mention to its last, and to the end of every loop that it
/// enters.
std::uint32_t live_registers(const std::vector<Instruction>& code, const std::vector<RegisterUse>& registers);

}  // namespace gpuctl::softgpu::engine
