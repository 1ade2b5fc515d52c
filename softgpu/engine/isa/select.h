// From a decoded operation to the handler that executes it. The handlers are compiled several times, for the machine's
// baseline and for newer instruction sets, each in its own namespace; select_handler() picks by what this CPU has.
#pragma once

#include "softgpu/engine/instruction.h"

namespace gpuctl::softgpu::engine {

enum class Op : std::uint8_t {
  // move.cc
  kMov,
  kWiden,
  kWidenSigned,
  kNarrow,
  kPack,
  kUnpack,
  kFrameOffset,
  kFrameAddress,
  kParamAddress,
  kIsShared,
  kIsLocal,
  kIsGlobal,
  kIsParam,
  kToShared,
  kFromShared,
  kToLocal,
  kFromLocal,
  kClock,
  kClockHigh,
  kSelp,
  kSlct,
  // integer.cc
  kAdd,
  kSub,
  kMulLo,
  kMulHi,
  kMulWide,
  kMadLo,
  kMadHi,
  kMadWide,
  kDiv,
  kRem,
  kMin,
  kMax,
  kAbs,
  kNeg,
  kSad,
  kMul24Lo,
  kMul24Hi,
  kMad24Lo,
  kMad24Hi,
  kAddCarry,
  kSubCarry,
  kMadLoCarry,
  kMadHiCarry,
  kAddSat,
  kSubSat,
  kMadHiSat,
  kDp4a,
  kDp2aLo,
  kDp2aHi,
  kMinRelu,
  kMaxRelu,
  // bits.cc
  kAnd,
  kOr,
  kXor,
  kNot,
  kCnot,
  kShl,
  kShr,
  kShfLeftWrap,
  kShfLeftClamp,
  kShfRightWrap,
  kShfRightClamp,
  kLop3,
  kPrmt,
  kPrmtMode,
  kBfe,
  kBfi,
  kBfind,
  kBfindShift,
  kBrev,
  kPopc,
  kClz,
  kFns,
  kBmskClamp,
  kBmskWrap,
  kSzextClamp,
  kSzextWrap,
  // floats: float.cc, half.cc, approx.cc
  kFma,
  kMul,
  kSqrt,
  kRcp,
  kRsqrt,
  kSin,
  kCos,
  kLg2,
  kEx2,
  kTanh,
  kTestp,
  kCopysign,
  // compare.cc, convert.cc, memory.cc, atomic.cc
  kSetp,
  kSet,
  kCvt,
  kCvtPack,
  kLoad,
  kStore,
  kAtom,
  kFence,
  kPrefetch,
  kCopyAsync,
  kNop,
};

enum class AtomOp : std::uint8_t { kAdd, kExch, kCas, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };

struct Selector {
  Op op;
  Type type = Type::kNone;
  Type from = Type::kNone;  ///< of a conversion or of slct/set: the source
  Round round = Round::kNearest;
  Compare compare = Compare::kEq;
  AtomOp atom = AtomOp::kAdd;
  bool strong = false;  ///< ld, st: volatile, relaxed, acquire, release: an atomic access
  int count = 1;        ///< elements of a vector; of cp.async: bytes
  bool ftz = false;
  bool sat = false;
  bool relu = false;
  bool approx = false;
  bool nan = false;  ///< min, max: NaN in, NaN out
  bool xorsign = false;
  bool immediate = false;  ///< load: a kernel parameter, the same for all lanes; atom: in shared memory
};

/// The handler, or nullptr if there is no such combination.
Handler select_handler(const Selector& selector);

namespace isa_base {
Handler select(const Selector& selector);
}
namespace isa_v3 {
Handler select(const Selector& selector);
}

}  // namespace gpuctl::softgpu::engine
