// What the rewriter knows about an instruction: what it writes, and whether a persistent kernel may contain it.
#pragma once

#include <string>
#include <string_view>

#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

enum class OpcodeKind {
  kUnknown,  ///< not in the table: never guessed
  kCompute,  ///< operand 0 from the others
  kLoad,     ///< operand 0 from memory or a texture
  kAtomic,   ///< operand 0 from memory, which the instruction changes
  kWarp,     ///< operand 0 from other lanes of the warp
  kEffect,   ///< writes no register
  kBarrier,  ///< `bar`, `barrier`; `.red` writes operand 0
  kBranch,   ///< `bra`, `brx`
  kCall,
  kReturn,  ///< `ret`, `exit`
  kTrap,
};

OpcodeKind opcode_kind(std::string_view opcode);

/// True when operand 0 is written.
bool writes_first_operand(const Instruction& instruction);

/// Why no kernel with this instruction can be persistent, in any context.
struct Refusal {
  std::string reason;  ///< empty: not refused
  bool once = false;   ///< a block may execute it for one block-task alone
};
Refusal refusal(const Instruction& instruction);

/// A barrier of the whole block that names resource 0 and no thread count: `bar.sync 0`, `barrier.cta.red.popc.u32 r,
/// 0, p`.
bool is_block_barrier(const Instruction& instruction);

/// A barrier among threads of the block (not of a warp): any `bar`/`barrier` but `bar.warp.sync`.
bool is_barrier(const Instruction& instruction);

/// An instruction that waits for the lanes of its warp that its mask names.
bool is_warp_sync(const Instruction& instruction);

/// The name of the function a call names directly, empty for an indirect call.
std::string_view call_target(const Instruction& call);

}  // namespace gpuctl::ptx
