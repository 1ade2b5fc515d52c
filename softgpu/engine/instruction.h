// Decoded code: the decoder makes it from PTX, and the block executor runs it.
//
// Registers are kept per warp as structures of arrays: a register of up to 32 bits is 32 lanes of u32, a 64-bit one is
// 32 lanes of u64, a predicate is one mask of 32 bits. An operand is the offset of such an array from one of a few
// bases (the current frame, the constants of the program, the special registers of the warp). So an immediate costs the
// same as a register, and one handler serves both. Values narrower than their lane have undefined upper bits.
//
// Handlers, which are compiled for newer instruction sets, include this header too: nothing in it may bring in inline
// functions that the rest of the program shares.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softgpu/engine/types.h"

namespace gpuctl::softgpu::engine {

inline constexpr int kLanes = 32;
using Mask = std::uint32_t;
inline constexpr Mask kAllLanes = 0xffffffff;

/// Bytes of one register in a frame.
inline constexpr std::uint32_t kSlot32 = kLanes * 4;
inline constexpr std::uint32_t kSlot64 = kLanes * 8;

/// Offset from a base; the two top bits name the base.
using OperandRef = std::uint32_t;
enum class Base : std::uint32_t { kFrame = 0, kPool = 1, kSpecial = 2 };
constexpr OperandRef operand_ref(Base base, std::uint32_t offset) {
  return (static_cast<std::uint32_t>(base) << 30) | offset;
}
inline constexpr OperandRef kNoOperand = 0xffffffff;

struct Context;
struct Instruction;
using Handler = void (*)(Context&, const Instruction&, Mask);

/// What the executor does with an instruction. For all kinds but kPlain the executor itself does the work.
enum class Kind : std::uint8_t {
  kPlain,        ///< call the handler
  kBranch,       ///< target
  kBranchTable,  ///< index in op[0], table `target`
  kCall,         ///< call site `target`
  kReturn,
  kExit,
  kBarrier,     ///< op[0] result, op[1] barrier, op[2] threads or kNoOperand, op[3] predicate; `sub` a BarrierOp
  kWarpSync,    ///< op[0] result, op[1..3] inputs, op[4] predicate result, op[5] member mask; `sub` a WarpOp
  kActiveMask,  ///< op[0]
  kSleep,       ///< nanoseconds in op[1]
  kTrap,        ///< text `target` or a plain trap
};

enum class BarrierOp : std::uint8_t { kSync, kArrive, kPopc, kAnd, kOr };
enum class WarpOp : std::uint8_t {
  kSync,
  kShflUp,
  kShflDown,
  kShflBfly,
  kShflIdx,  // op[1] value, op[2] lane, op[3] clamp
  kVoteAll,
  kVoteAny,
  kVoteUni,
  kVoteBallot,  // op[1] predicate
  kMatchAny32,
  kMatchAll32,
  kMatchAny64,
  kMatchAll64,
  kReduxAddU,
  kReduxMinU,
  kReduxMaxU,
  kReduxMinS,
  kReduxMaxS,
  kReduxAnd,
  kReduxOr,
  kReduxXor,
  kElect,
};

/// Bits of Instruction::flags.
inline constexpr std::uint16_t kNegateGuard = 1;  ///< guard is `@!p`
inline constexpr std::uint16_t kAddress32 = 4;    ///< the address register has 32 bits
inline constexpr std::uint16_t kCarryIn = 8;      ///< addc, subc, madc
inline constexpr std::uint16_t kCarryOut = 16;    ///< .cc
inline constexpr std::uint16_t kPolls = 32;    ///< reads memory that others may write: a loop around it may be a wait
inline constexpr std::uint16_t kUniform = 64;  ///< no .sync: the lanes that arrive are the members

struct Instruction {
  Handler handler = nullptr;
  OperandRef op[6] = {kNoOperand, kNoOperand, kNoOperand, kNoOperand, kNoOperand, kNoOperand};
  OperandRef guard = kNoOperand;  ///< a predicate
  std::uint16_t flags = 0;
  Kind kind = Kind::kPlain;
  std::uint8_t sub = 0;      ///< BarrierOp, WarpOp or a number the handler knows
  std::int64_t imm = 0;      ///< address offset, lookup table, ...
  std::uint32_t target = 0;  ///< branch: instruction index; call: call site; ...
  std::uint32_t line = 0;    ///< in the PTX text
  Space space = Space::kGlobal;
  Round round = Round::kNearest;
  Compare compare = Compare::kEq;
  Combine combine = Combine::kNone;
};

/// Alignment of frames in bytes: registers for vector loads, local memory for the widest PTX type.
inline constexpr std::uint32_t kRegisterAlign = 64;
inline constexpr std::uint32_t kLocalAlign = 16;

/// Offsets in the special area of a warp; each is a kSlot32 but the 64-bit ones.
enum Special : std::uint32_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kLanemaskEq,
  kLanemaskLt,
  kLanemaskLe,
  kLanemaskGt,
  kLanemaskGe,
  kDynamicSmemSize,
  kTotalSmemSize,
  kDynamicSmemOffset,
  kSpecials32,
};
inline constexpr std::uint32_t kGridIdOffset = kSpecials32 * kSlot32;
inline constexpr std::uint32_t kSpecialBytes = kGridIdOffset + kSlot64;

}  // namespace gpuctl::softgpu::engine
