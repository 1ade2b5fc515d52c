// Arithmetic on f16 and bf16, single and in pairs. Sums and products are formed exactly, or rounded to odd, in double
// and then rounded once: the result is the correctly rounded one.
#include "softgpu/engine/isa/rounding.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

/// a * b + c in double, rounded to odd, so that rounding again to 11 bits cannot err. The product is exact.
double fma_odd(double a, double b, double c) {
  const double p = a * b, s = p + c;
  const double t = s - p, error = (p - (s - t)) + (c - t);
  if (!(error != 0) || !(s - s == 0)) return s;
  U64 bits = __builtin_bit_cast(U64, s);
  if (bits & 1) return s;
  bits += ((error > 0) == (s > 0)) ? 1 : -1;
  return __builtin_bit_cast(double, bits);
}

struct Add {
  static GPUCTL_INLINE double apply(double a, double b) { return fma_odd(a, 1, b); }
};
struct Sub {
  static GPUCTL_INLINE double apply(double a, double b) { return fma_odd(a, 1, -b); }
};
struct Mul {
  static GPUCTL_INLINE double apply(double a, double b) { return a * b; }
};
struct Fma {
  static GPUCTL_INLINE double apply(double a, double b, double c) { return fma_odd(a, b, c); }
};
struct Tanh {
  static GPUCTL_INLINE double apply(double a) { return __builtin_tanh(a); }
};
struct Ex2 {
  static GPUCTL_INLINE double apply(double a) { return __builtin_exp2(a); }
};

struct Modes {  // bits of Instruction::sub
  bool ftz, sat, relu;
};
Modes modes_of(const Instruction& in) {
  return {(in.sub & 1) != 0, (in.sub & 2) != 0, (in.sub & 4) != 0};
}

template <class H>
GPUCTL_INLINE H finish(double r, Round round, Modes m) {
  if (r != r) return m.sat ? H{0} : canonical_nan<H>();
  if (m.sat) r = r > 0 ? (r < 1 ? r : 1) : 0;
  if (m.relu && !(r > 0)) r = 0;
  const H h = narrow<H>(r, round);
  return m.ftz ? flush(h) : h;
}

template <class H, class F, int kArity>
GPUCTL_INLINE H compute(U32 a, U32 b, U32 c, Round round, Modes m) {
  const auto in = [m](U32 s) -> double { return value_of(m.ftz ? flush(get<H>(s)) : get<H>(s)); };
  if constexpr (kArity == 1)
    return finish<H>(F::apply(in(a)), round, m);
  else if constexpr (kArity == 2)
    return finish<H>(F::apply(in(a), in(b)), round, m);
  else
    return finish<H>(F::apply(in(a), in(b), in(c)), round, m);
}

template <class H, class F, int kArity, bool kPair>
void arithmetic(Context& ctx, const Instruction& in, Mask mask) {
  U32* d = at<U32>(ctx, in.op[0]);
  const U32* a = at<U32>(ctx, in.op[1]);
  const U32* b = kArity > 1 ? at<U32>(ctx, in.op[2]) : a;
  const U32* c = kArity > 2 ? at<U32>(ctx, in.op[3]) : a;
  const Modes m = modes_of(in);
  each(mask, [=, &in](int i) {
    U32 r = compute<H, F, kArity>(a[i], b[i], c[i], in.round, m).bits;
    if constexpr (kPair) r |= U32(compute<H, F, kArity>(a[i] >> 16, b[i] >> 16, c[i] >> 16, in.round, m).bits) << 16;
    d[i] = r;
  });
}

/// Operations on the bits: sign changes, minimum and maximum.
template <class H, class F, int kArity, bool kPair>
void bitwise(Context& ctx, const Instruction& in, Mask mask) {
  U32* d = at<U32>(ctx, in.op[0]);
  const U32* a = at<U32>(ctx, in.op[1]);
  const U32* b = kArity > 1 ? at<U32>(ctx, in.op[2]) : a;
  const Modes m = modes_of(in);
  const auto one = [m](U32 x, U32 y) {
    H p = get<H>(x), q = get<H>(y);
    if (m.ftz) p = flush(p), q = flush(q);
    return U32(F::apply(p, q).bits);
  };
  each(mask, [=](int i) {
    U32 r = one(a[i], b[i]);
    if constexpr (kPair) r |= one(a[i] >> 16, b[i] >> 16) << 16;
    d[i] = r;
  });
}

struct Neg {
  template <class H>
  static GPUCTL_INLINE H apply(H a, H) {
    return H{static_cast<U16>(a.bits ^ 0x8000)};
  }
};
struct Abs {
  template <class H>
  static GPUCTL_INLINE H apply(H a, H) {
    return H{static_cast<U16>(a.bits & 0x7fff)};
  }
};
template <bool kMax, bool kNan, bool kXorsign>
struct MinMax {
  template <class H>
  static GPUCTL_INLINE H apply(H a, H b) {
    const U16 sign = kXorsign ? (a.bits ^ b.bits) & 0x8000 : 0;
    if constexpr (kXorsign) a.bits &= 0x7fff, b.bits &= 0x7fff;
    const float x = value_of(a), y = value_of(b);
    H r = (kMax ? x > y : x < y) ? a : b;
    if (x == y) r.bits = kMax ? a.bits & b.bits : a.bits | b.bits;
    if (y != y) r = a;
    if (kNan && (x != x || y != y)) return canonical_nan<H>();
    if (is_nan(r)) return canonical_nan<H>();
    return H{static_cast<U16>(r.bits | sign)};
  }
};

template <class F, int kArity>
Handler arithmetic_of(Type type) {
  switch (type) {
    case Type::kF16:
      return &arithmetic<Half, F, kArity, false>;
    case Type::kF16x2:
      return &arithmetic<Half, F, kArity, true>;
    case Type::kBf16:
      return &arithmetic<Bfloat, F, kArity, false>;
    case Type::kBf16x2:
      return &arithmetic<Bfloat, F, kArity, true>;
    default:
      return nullptr;
  }
}
template <class F, int kArity>
Handler bitwise_of(Type type) {
  switch (type) {
    case Type::kF16:
      return &bitwise<Half, F, kArity, false>;
    case Type::kF16x2:
      return &bitwise<Half, F, kArity, true>;
    case Type::kBf16:
      return &bitwise<Bfloat, F, kArity, false>;
    case Type::kBf16x2:
      return &bitwise<Bfloat, F, kArity, true>;
    default:
      return nullptr;
  }
}
template <bool kMax>
Handler min_max(const Selector& s) {
  if (s.nan)
    return s.xorsign ? bitwise_of<MinMax<kMax, true, true>, 2>(s.type)
                     : bitwise_of<MinMax<kMax, true, false>, 2>(s.type);
  return s.xorsign ? bitwise_of<MinMax<kMax, false, true>, 2>(s.type)
                   : bitwise_of<MinMax<kMax, false, false>, 2>(s.type);
}

}  // namespace

Handler select_half(const Selector& s) {
  switch (s.op) {
    case Op::kAdd:
      return arithmetic_of<Add, 2>(s.type);
    case Op::kSub:
      return arithmetic_of<Sub, 2>(s.type);
    case Op::kMul:
      return arithmetic_of<Mul, 2>(s.type);
    case Op::kFma:
      return arithmetic_of<Fma, 3>(s.type);
    case Op::kTanh:
      return arithmetic_of<Tanh, 1>(s.type);
    case Op::kEx2:
      return arithmetic_of<Ex2, 1>(s.type);
    case Op::kNeg:
      return bitwise_of<Neg, 1>(s.type);
    case Op::kAbs:
      return bitwise_of<Abs, 1>(s.type);
    case Op::kMin:
      return min_max<false>(s);
    case Op::kMax:
      return min_max<true>(s);
    default:
      return nullptr;
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
