// Integer arithmetic, with its carry chains.
#include "softgpu/engine/isa/lanes.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, S32, U32>,
                                std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, S64, U64>,
                                                   std::conditional_t<std::is_signed_v<T>, Int128, UInt128>>>;

// Sums and products go through 32 or 64 unsigned bits: no overflow and no promotion of u16 to int.
template <class T>
using Ring = std::conditional_t<sizeof(T) == 8, U64, U32>;

struct Add {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return static_cast<T>(Ring<T>(a) + Ring<T>(b));
  }
};
struct Sub {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return static_cast<T>(Ring<T>(a) - Ring<T>(b));
  }
};
struct MulLo {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return static_cast<T>(Ring<T>(a) * Ring<T>(b));
  }
};
struct MulHi {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return static_cast<T>((Wide<T>(a) * Wide<T>(b)) >> (sizeof(T) * 8));
  }
};
struct MulWide {
  template <class T>
  static GPUCTL_INLINE Wide<T> apply(T a, T b) {
    return Wide<T>(a) * Wide<T>(b);
  }
};
struct MadLo {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b, T c) {
    return static_cast<T>(Ring<T>(a) * Ring<T>(b) + Ring<T>(c));
  }
};
struct MadHi {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b, T c) {
    return Add::apply(MulHi::apply(a, b), c);
  }
};
struct MadWide {
  template <class T>
  static GPUCTL_INLINE Wide<T> apply(T a, T b, Wide<T> c) {
    return Add::apply(MulWide::apply(a, b), c);
  }
};
struct Div {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~Ring<T>(0));
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(-Ring<T>(a));
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return a > b ? a : b;
  }
};
template <class F>
struct Relu {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return Max::apply(F::apply(a, b), T(0));
  }
};
struct Neg {
  template <class T>
  static GPUCTL_INLINE T apply(T a) {
    return static_cast<T>(-Ring<T>(a));
  }
};
struct Abs {
  template <class T>
  static GPUCTL_INLINE T apply(T a) {
    return a < 0 ? Neg::apply(a) : a;
  }
};
struct Sad {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b, T c) {
    return static_cast<T>((a < b ? Ring<T>(b) - Ring<T>(a) : Ring<T>(a) - Ring<T>(b)) + Ring<T>(c));
  }
};

// The 24-bit forms take the low 24 bits and give bits 31..0 or 47..16 of the product.
GPUCTL_INLINE S64 low24(S32 a) {
  return static_cast<S32>(static_cast<U32>(a) << 8) >> 8;
}
GPUCTL_INLINE S64 low24(U32 a) {
  return a & 0xffffff;
}
template <int kShift>
struct Mul24 {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return static_cast<T>((low24(a) * low24(b)) >> kShift);
  }
};
template <int kShift>
struct Mad24 {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b, T c) {
    return Add::apply(Mul24<kShift>::apply(a, b), c);
  }
};

GPUCTL_INLINE S32 clamp32(S64 v) {
  return static_cast<S32>(v > 0x7fffffff ? 0x7fffffff : v < -0x80000000LL ? -0x80000000LL : v);
}
struct AddSat {
  static GPUCTL_INLINE S32 apply(S32 a, S32 b) { return clamp32(S64(a) + b); }
};
struct SubSat {
  static GPUCTL_INLINE S32 apply(S32 a, S32 b) { return clamp32(S64(a) - b); }
};
struct MadHiSat {
  static GPUCTL_INLINE S32 apply(S32 a, S32 b, S32 c) { return clamp32(S64(MulHi::apply(a, b)) + c); }
};

// Two 16-bit values in one register.
template <class F, class T>
struct Pair {
  static GPUCTL_INLINE U32 apply(U32 a, U32 b) {
    const U32 low = static_cast<Unsigned<T>>(F::template apply<T>(static_cast<T>(a), static_cast<T>(b)));
    const U32 high = static_cast<Unsigned<T>>(F::template apply<T>(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return low | high << 16;
  }
};

template <class A, class B>
struct Dp4a {
  static GPUCTL_INLINE U32 apply(U32 a, U32 b, U32 c) {
    for (int i = 0; i < 4; ++i)
      c += static_cast<U32>(S32(static_cast<A>(a >> (8 * i))) * S32(static_cast<B>(b >> (8 * i))));
    return c;
  }
};
template <class A, class B, int kFirst>
struct Dp2a {
  static GPUCTL_INLINE U32 apply(U32 a, U32 b, U32 c) {
    for (int i = 0; i < 2; ++i)
      c += static_cast<U32>(S32(static_cast<A>(a >> (16 * i))) * S32(static_cast<B>(b >> (8 * (i + kFirst)))));
    return c;
  }
};

/// x + y + carry for additions, x - y - carry for subtractions, with the flags Instruction::flags ask for.
template <class T, bool kSubtract, class F>
GPUCTL_INLINE void with_carry(Context& ctx, const Instruction& in, Mask mask, T* d, F operands) {
  const Mask carry_in = in.flags & kCarryIn ? ctx.carry : 0;
  Mask carry_out = 0;
  each(
      mask, [&](int i) __attribute__((always_inline)) {
        T x, y;
        operands(i, x, y);
        const T c = (carry_in >> i) & 1;
        T r;
        bool out;
        if constexpr (kSubtract) {
          r = x - y - c;
          out = x < y || (x == y && c != 0);
        } else {
          r = x + y + c;
          out = r < x || (r == x && c != 0);
        }
        d[i] = r;
        carry_out |= Mask(out) << i;
      });
  if (in.flags & kCarryOut) ctx.carry = (ctx.carry & ~mask) | carry_out;
}

template <class T, bool kSubtract>
void add_carry(Context& ctx, const Instruction& in, Mask mask) {
  const T* a = at<T>(ctx, in.op[1]);
  const T* b = at<T>(ctx, in.op[2]);
  with_carry<T, kSubtract>(ctx, in, mask, at<T>(ctx, in.op[0]), [=](int i, T& x, T& y) { x = a[i], y = b[i]; });
}

template <class T, bool kHigh>
void mad_carry(Context& ctx, const Instruction& in, Mask mask) {
  using U = Unsigned<T>;
  const U* a = at<U>(ctx, in.op[1]);
  const U* b = at<U>(ctx, in.op[2]);
  const U* c = at<U>(ctx, in.op[3]);
  with_carry<U, false>(ctx, in, mask, at<U>(ctx, in.op[0]), [=](int i, U& x, U& y) {
    const T p = static_cast<T>(a[i]), q = static_cast<T>(b[i]);
    x = static_cast<U>(kHigh ? MulHi::apply(p, q) : MulLo::apply(p, q));
    y = c[i];
  });
}

template <class F>
Handler binary_of(Type type) {
  return pick<U16, U32, U64, S16, S32, S64>(type, [](auto t) -> Handler {
    using T = typename decltype(t)::type;
    return &binary<F, T, T, T>;
  });
}
template <class F>
Handler ternary_of(Type type) {
  return pick<U16, U32, U64, S16, S32, S64>(type, [](auto t) -> Handler {
    using T = typename decltype(t)::type;
    return &ternary<F, T, T, T, T>;
  });
}
template <class F>
Handler pairs_of(Type type) {
  if (type == Type::kU16x2) return &binary<Pair<F, U16>, U32, U32, U32>;
  if (type == Type::kS16x2) return &binary<Pair<F, S16>, U32, U32, U32>;
  return nullptr;
}
template <class F>
Handler on32(Type type) {
  return pick<U32, S32>(type, [](auto t) -> Handler {
    using T = typename decltype(t)::type;
    return &binary<F, T, T, T>;
  });
}
template <class F>
Handler mad_on32(Type type) {
  return pick<U32, S32>(type, [](auto t) -> Handler {
    using T = typename decltype(t)::type;
    return &ternary<F, T, T, T, T>;
  });
}

template <template <class, class> class F>
Handler dot(const Selector& s) {
  const bool a = s.type == Type::kS32, b = s.from == Type::kS32;
  if (a) return b ? &ternary<F<S8, S8>, U32, U32, U32, U32> : &ternary<F<S8, U8>, U32, U32, U32, U32>;
  return b ? &ternary<F<U8, S8>, U32, U32, U32, U32> : &ternary<F<U8, U8>, U32, U32, U32, U32>;
}
template <int kFirst>
Handler dot2(const Selector& s) {
  const bool a = s.type == Type::kS32, b = s.from == Type::kS32;
  if (a)
    return b ? &ternary<Dp2a<S16, S8, kFirst>, U32, U32, U32, U32>
             : &ternary<Dp2a<S16, U8, kFirst>, U32, U32, U32, U32>;
  return b ? &ternary<Dp2a<U16, S8, kFirst>, U32, U32, U32, U32> : &ternary<Dp2a<U16, U8, kFirst>, U32, U32, U32, U32>;
}

}  // namespace

Handler select_integer(const Selector& s) {
  const bool pairs = s.type == Type::kU16x2 || s.type == Type::kS16x2;
  const bool wide = size_of(s.type) == 8;
  switch (s.op) {
    case Op::kAdd:
      return pairs ? pairs_of<Add>(s.type) : binary_of<Add>(s.type);
    case Op::kSub:
      return pairs ? pairs_of<Sub>(s.type) : binary_of<Sub>(s.type);
    case Op::kMin:
      return pairs ? pairs_of<Min>(s.type) : binary_of<Min>(s.type);
    case Op::kMax:
      return pairs ? pairs_of<Max>(s.type) : binary_of<Max>(s.type);
    case Op::kMinRelu:
      return s.type == Type::kS32     ? &binary<Relu<Min>, S32, S32, S32>
             : s.type == Type::kS16x2 ? pairs_of<Relu<Min>>(s.type)
                                      : nullptr;
    case Op::kMaxRelu:
      return s.type == Type::kS32     ? &binary<Relu<Max>, S32, S32, S32>
             : s.type == Type::kS16x2 ? pairs_of<Relu<Max>>(s.type)
                                      : nullptr;
    case Op::kMulLo:
      return binary_of<MulLo>(s.type);
    case Op::kMulHi:
      return binary_of<MulHi>(s.type);
    case Op::kMulWide:
      return pick<U16, U32, S16, S32>(s.type, [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &binary<MulWide, Wide<T>, T, T>;
      });
    case Op::kMadLo:
      return ternary_of<MadLo>(s.type);
    case Op::kMadHi:
      return ternary_of<MadHi>(s.type);
    case Op::kMadWide:
      return pick<U16, U32, S16, S32>(s.type, [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &ternary<MadWide, Wide<T>, T, T, Wide<T>>;
      });
    case Op::kDiv:
      return binary_of<Div>(s.type);
    case Op::kRem:
      return binary_of<Rem>(s.type);
    case Op::kSad:
      return ternary_of<Sad>(s.type);
    case Op::kNeg:
      return pick<S16, S32, S64>(s.type, [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &unary<Neg, T, T>;
      });
    case Op::kAbs:
      return pick<S16, S32, S64>(s.type, [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &unary<Abs, T, T>;
      });
    case Op::kMul24Lo:
      return on32<Mul24<0>>(s.type);
    case Op::kMul24Hi:
      return on32<Mul24<16>>(s.type);
    case Op::kMad24Lo:
      return mad_on32<Mad24<0>>(s.type);
    case Op::kMad24Hi:
      return mad_on32<Mad24<16>>(s.type);
    case Op::kAddSat:
      return s.type == Type::kS32 ? &binary<AddSat, S32, S32, S32> : nullptr;
    case Op::kSubSat:
      return s.type == Type::kS32 ? &binary<SubSat, S32, S32, S32> : nullptr;
    case Op::kMadHiSat:
      return s.type == Type::kS32 ? &ternary<MadHiSat, S32, S32, S32, S32> : nullptr;
    case Op::kAddCarry:
      return wide ? &add_carry<U64, false> : &add_carry<U32, false>;
    case Op::kSubCarry:
      return wide ? &add_carry<U64, true> : &add_carry<U32, true>;
    case Op::kMadLoCarry:
      return wide ? &mad_carry<U64, false> : &mad_carry<U32, false>;
    case Op::kMadHiCarry:
      return pick<U32, S32, U64, S64>(s.type, [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &mad_carry<T, true>;
      });
    case Op::kDp4a:
      return dot<Dp4a>(s);
    case Op::kDp2aLo:
      return dot2<0>(s);
    case Op::kDp2aHi:
      return dot2<2>(s);
    default:
      return nullptr;
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
