// Decoded functions, and the other parts of a Program.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "softgpu/engine/engine.h"
#include "softgpu/engine/instruction.h"

namespace gpuctl::softgpu::engine {

/// The next multiple of `align`.
template <class T>
constexpr T round_up(T value, std::type_identity_t<T> align) {
  return (value + align - 1) / align * align;
}

/// The place of an argument or result of a call: in a register, or in the local memory of a call frame.
struct Place {
  bool in_register = false;
  OperandRef reg = kNoOperand;
  std::uint32_t offset = 0;  ///< in the frame's local memory
  std::uint32_t size = 0;    ///< bytes; in a register: 0 predicate, up to 4, or 8
};

struct CallSite {
  const Function* callee = nullptr;  ///< nullptr: address in `pointer`, or a built-in function
  OperandRef pointer = kNoOperand;
  int builtin = 0;  ///< a Builtin
  std::vector<Place> arguments;
  std::vector<Place> results;
};

enum Builtin : int { kNotBuiltin, kVprintf, kAssertFail };

struct Function {
  std::string name;
  bool entry = false;
  bool defined = false;     ///< has a body in this module
  std::string error;        ///< not empty: the function cannot run, for this reason
  std::uint32_t first = 0;  ///< index of the first instruction in Program::Impl::code
  std::uint32_t count = 0;
  std::uint32_t register_bytes = 0;  ///< of one frame, for a warp
  std::uint32_t local_bytes = 0;     ///< of one frame, for a thread
  std::uint32_t stack_bytes = 0;     ///< entries: local memory of a thread, calls included
  std::uint32_t live_words = 0;      ///< 32-bit registers needed at once, an estimate
  std::vector<Place> parameters;     ///< of a .func
  std::vector<Place> results;
  std::vector<const Function*> callees;
  bool calls_pointer = false;
  bool address_taken = false;
  bool uses_shared = false;  ///< names shared variables that several helper functions use
};

struct Program::Impl {
  std::vector<Instruction> code;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<CallSite> call_sites;
  std::vector<std::vector<std::uint32_t>> branch_tables;
  std::vector<std::string> texts;
  std::vector<std::uint64_t> pool_words;  ///< constants, kLanes copies each; 64-byte aligned at `pool`
  std::byte* pool = nullptr;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::string> kernel_names;
  std::vector<std::string> kernel_errors;
  struct NamedSymbol {
    std::string name;
    Symbol symbol;
  };
  std::vector<NamedSymbol> symbols;
  std::byte* memory = nullptr;  ///< all variables
  std::size_t memory_bytes = 0;
  ~Impl();
};

}  // namespace gpuctl::softgpu::engine
