// atom and red. Operations on a named shared address are plain, since a block runs on one OS thread; all others are
// host atomics.
#include "softgpu/engine/isa/address.h"
#include "softgpu/engine/isa/rounding.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

/// The lanes of a pair of halves are added one by one.
template <class H>
struct HalfPair {
  static U32 add(U32 a, U32 b) { return half(a, b) | half(a >> 16, b >> 16) << 16; }
  static U32 half(U32 a, U32 b) {
    return narrow<H>(double(value_of(get<H>(a & 0xffff))) + double(value_of(get<H>(b & 0xffff))), Round::kNearest).bits;
  }
};

/// The new value of a memory word. T is the type in which the operation computes, or a tag of a packed one.
template <AtomOp kOp, class T>
struct Update {
  using Word =
      std::make_unsigned_t<std::conditional_t<sizeof(T) == 8, S64, std::conditional_t<sizeof(T) == 2, S16, S32>>>;
  static GPUCTL_INLINE Word apply(Word old, Word b) {
    if constexpr (kOp == AtomOp::kExch)
      return b;
    else if constexpr (kOp == AtomOp::kAnd)
      return old & b;
    else if constexpr (kOp == AtomOp::kOr)
      return old | b;
    else if constexpr (kOp == AtomOp::kXor)
      return old ^ b;
    else if constexpr (kOp == AtomOp::kInc)
      return old >= b ? 0 : old + 1;
    else if constexpr (kOp == AtomOp::kDec)
      return old == 0 || old > b ? b : old - 1;
    else if constexpr (std::is_integral_v<T>) {
      const T x = static_cast<T>(old), y = static_cast<T>(b);
      if constexpr (kOp == AtomOp::kAdd)
        return static_cast<Word>(old + b);
      else if constexpr (kOp == AtomOp::kMin)
        return static_cast<Word>(x < y ? x : y);
      else
        return static_cast<Word>(x > y ? x : y);
    } else {
      const T r = get<T>(old) + get<T>(b);
      return static_cast<Word>(put<T>(r != r && sizeof(T) == 4 ? canonical_nan<T>() : r));
    }
  }
};
template <class H>
struct HalfUpdate {
  using Word = U16;
  static GPUCTL_INLINE Word apply(Word old, Word b) { return static_cast<Word>(HalfPair<H>::half(old, b)); }
};
template <class H>
struct PairUpdate {
  using Word = U32;
  static GPUCTL_INLINE Word apply(Word old, Word b) { return HalfPair<H>::add(old, b); }
};
/// In global memory a GPU flushes subnormals of red/atom.add.f32.
struct FlushingAdd {
  using Word = U32;
  static GPUCTL_INLINE Word apply(Word old, Word b) {
    return put<float>(flush(get<float>(
        Update<AtomOp::kAdd, float>::apply(put<float>(flush(get<float>(old))), put<float>(flush(get<float>(b)))))));
  }
};

template <class U, bool kShared>
GPUCTL_INLINE typename U::Word update(typename U::Word* p, typename U::Word b) {
  using Word = typename U::Word;
  Word old = __atomic_load_n(p, __ATOMIC_RELAXED);
  if constexpr (kShared) {
    *p = U::apply(old, b);
  } else {
    while (!__atomic_compare_exchange_n(p, &old, U::apply(old, b), true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
  }
  return old;
}
template <class U, AtomOp kOp>
GPUCTL_INLINE typename U::Word direct(typename U::Word* p, typename U::Word b) {  // the CPU has an instruction for it
  if constexpr (kOp == AtomOp::kAdd)
    return __atomic_fetch_add(p, b, __ATOMIC_ACQ_REL);
  else
    return __atomic_exchange_n(p, b, __ATOMIC_ACQ_REL);
}

/// op: d (or none), b; op[4]: address
template <class U, AtomOp kOp, bool kDirect, bool kShared>
void atom(Context& ctx, const Instruction& in, Mask mask) {
  using Word = typename U::Word;
  resolve<sizeof(Word), 4>(ctx, in, mask);
  Slot<Word>* d = in.op[0] == kNoOperand ? nullptr : at<Slot<Word>>(ctx, in.op[0]);
  const Slot<Word>* b = at<Slot<Word>>(ctx, in.op[1]);
  for (; mask != 0; mask &= mask - 1) {
    const int i = __builtin_ctz(mask);
    Word* p = reinterpret_cast<Word*>(ctx.address[i]);
    const Word value = static_cast<Word>(b[i]);
    Word old;
    if constexpr (kDirect && !kShared)
      old = direct<U, kOp>(p, value);
    else
      old = update<U, kShared>(p, value);
    if (d != nullptr) d[i] = old;
  }
}

/// op: d, compare, value; op[4]: address
template <class Word>
void cas(Context& ctx, const Instruction& in, Mask mask) {
  resolve<sizeof(Word), 4>(ctx, in, mask);
  Slot<Word>* d = in.op[0] == kNoOperand ? nullptr : at<Slot<Word>>(ctx, in.op[0]);
  const Slot<Word>*b = at<Slot<Word>>(ctx, in.op[1]), *c = at<Slot<Word>>(ctx, in.op[2]);
  for (; mask != 0; mask &= mask - 1) {
    const int i = __builtin_ctz(mask);
    Word expected = static_cast<Word>(b[i]);
    __atomic_compare_exchange_n(reinterpret_cast<Word*>(ctx.address[i]), &expected, static_cast<Word>(c[i]), false,
                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (d != nullptr) d[i] = expected;
  }
}

template <class U, AtomOp kOp, bool kDirect>
Handler of(const Selector& s) {
  return s.immediate ? &atom<U, kOp, kDirect, true> : &atom<U, kOp, kDirect, false>;  // immediate: shared memory
}
template <AtomOp kOp, bool kDirect, class... Ts>
Handler of_types(const Selector& s, Type type) {
  return pick<Ts...>(type,
                     [&](auto t) -> Handler { return of<Update<kOp, typename decltype(t)::type>, kOp, kDirect>(s); });
}

}  // namespace

Handler select_atomic(const Selector& s) {
  if (s.op != Op::kAtom) return nullptr;
  const Type type = without_bits(s.type);
  switch (s.atom) {
    case AtomOp::kAdd:
      if (type == Type::kF32 && !s.immediate) return of<FlushingAdd, AtomOp::kAdd, false>(s);
      if (type == Type::kF16) return of<HalfUpdate<Half>, AtomOp::kAdd, false>(s);
      if (type == Type::kBf16) return of<HalfUpdate<Bfloat>, AtomOp::kAdd, false>(s);
      if (type == Type::kF16x2) return of<PairUpdate<Half>, AtomOp::kAdd, false>(s);
      if (type == Type::kBf16x2) return of<PairUpdate<Bfloat>, AtomOp::kAdd, false>(s);
      if (is_float(type)) return of_types<AtomOp::kAdd, false, float, double>(s, type);
      return of_types<AtomOp::kAdd, true, U32, U64>(s, bits_of(type));
    case AtomOp::kExch:
      return of_types<AtomOp::kExch, true, U32, U64>(s, bits_of(type));
    case AtomOp::kMin:
      return of_types<AtomOp::kMin, false, U32, S32, U64, S64>(s, type);
    case AtomOp::kMax:
      return of_types<AtomOp::kMax, false, U32, S32, U64, S64>(s, type);
    case AtomOp::kInc:
      return of_types<AtomOp::kInc, false, U32>(s, type);
    case AtomOp::kDec:
      return of_types<AtomOp::kDec, false, U32>(s, type);
    case AtomOp::kAnd:
      return of_types<AtomOp::kAnd, false, U32, U64>(s, bits_of(type));
    case AtomOp::kOr:
      return of_types<AtomOp::kOr, false, U32, U64>(s, bits_of(type));
    case AtomOp::kXor:
      return of_types<AtomOp::kXor, false, U32, U64>(s, bits_of(type));
    case AtomOp::kCas:
      return size_of(type) == 8 ? &cas<U64> : size_of(type) == 2 ? &cas<U16> : &cas<U32>;
  }
  return nullptr;
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
