// The flow of a function in which values also pass through memory: through shared and local variables and through the
// parameters of calls.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "ptx/analysis/facts.h"
#include "ptx/analysis/flow.h"

namespace gpuctl::ptx {

/// What an instruction does with memory that other blocks can reach (memory_use.h).
struct Access {
  std::uint16_t use = 0;
  /// The parameter or variable that its address is computed from; empty: not known.
  std::string root;
};

struct MemoryFlow {
  /// Among its registers are the function's shared and local variables and the parameters of its calls. A store to one
  /// of them reads it too, as other parts of it stay. The loads and stores of one whose address is not known concern
  /// all.
  Flow flow;
  std::unordered_map<const Instruction*, Access> accesses;  ///< those with any use
  std::vector<char> is_shared;                              ///< by register: it is a shared variable
  std::vector<char> is_memory;                              ///< by register: it is a shared or local variable
  std::vector<char> is_call_param;                          ///< by register: it is a parameter of a call
};

/// Errors: those of build_flow(). `facts`, of the function's module, and the function must outlive the result.
Result<MemoryFlow> build_memory_flow(const ModuleFacts& facts, const Function& function);

}  // namespace gpuctl::ptx
