// Arithmetic on f32 and f64.
//
// Round to nearest has a handler for each combination of .ftz and .sat, so that the loops vectorise. Directed rounding
// is rare. Each operation has one handler for it, which sets the rounding mode of the CPU around the loop and reads
// .ftz and .sat from the instruction (bits 0 and 1 of `sub`).
#include <cfenv>

#include "softgpu/engine/isa/rounding.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

template <bool kFtz, class T>
GPUCTL_INLINE T input(T x) {
  if constexpr (kFtz && sizeof(T) == 4) return flush(x);
  return x;
}

template <class T>
GPUCTL_INLINE T saturate(T x) {
  return x > T(0) ? (x < T(1) ? x : T(1)) : T(0);
}  // NaN to +0

template <bool kFtz, bool kSat, class T>
GPUCTL_INLINE T output(T x) {
  x = input<kFtz>(x);
  if constexpr (kSat) return saturate(x);
  if constexpr (sizeof(T) == 4) return x != x ? canonical_nan<T>() : x;
  return x;
}

struct Add {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return a * b;
  }
};
struct Div {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return a / b;
  }
};
struct Fma {
  static GPUCTL_INLINE float apply(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static GPUCTL_INLINE double apply(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct Sqrt {
  static GPUCTL_INLINE float apply(float a) { return __builtin_sqrtf(a); }
  static GPUCTL_INLINE double apply(double a) { return __builtin_sqrt(a); }
};
struct Rcp {
  template <class T>
  static GPUCTL_INLINE T apply(T a) {
    return T(1) / a;
  }
};
struct Neg {
  template <class T>
  static GPUCTL_INLINE T apply(T a) {
    return from_bits<T>(to_bits(a) ^ U64(1) << (sizeof(T) * 8 - 1));
  }
};
struct Abs {
  template <class T>
  static GPUCTL_INLINE T apply(T a) {
    return from_bits<T>(to_bits(a) & ~(U64(1) << (sizeof(T) * 8 - 1)));
  }
};
struct Copysign {  // the sign of a, the rest of b
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    constexpr U64 kSign = U64(1) << (sizeof(T) * 8 - 1);
    return from_bits<T>((to_bits(a) & kSign) | (to_bits(b) & ~kSign));
  }
};

/// IEEE 754-2008 minNum/maxNum with -0 < +0. .NaN: a NaN wins. .xorsign.abs: compares the magnitudes; the sign is the
/// xor of the signs.
template <bool kMax, bool kNan, bool kXorsign>
struct MinMax {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    constexpr U64 kSign = U64(1) << (sizeof(T) * 8 - 1);
    const U64 sign = kXorsign ? (to_bits(a) ^ to_bits(b)) & kSign : 0;
    if constexpr (kXorsign) a = Abs::apply(a), b = Abs::apply(b);
    T r = (kMax ? a > b : a < b) ? a : b;
    if (a == b) r = from_bits<T>(kMax ? to_bits(a) & to_bits(b) : to_bits(a) | to_bits(b));
    if (b != b) r = a;
    if (kNan && (a != a || b != b)) return canonical_nan<T>();
    if (r != r) return canonical_nan<T>();
    return kXorsign ? from_bits<T>(to_bits(r) | sign) : r;
  }
};

template <class F, bool kFtz, bool kSat>
struct Wrapped {
  template <class... T>
  static GPUCTL_INLINE auto apply(T... x) {
    return output<kFtz, kSat>(F::apply(input<kFtz>(x)...));
  }
};
template <class F, bool kFtz>
struct BitsOnly {  // results are not arithmetic: NaNs stay as they are
  template <class... T>
  static GPUCTL_INLINE auto apply(T... x) {
    return input<kFtz>(F::apply(input<kFtz>(x)...));
  }
};

template <class F, class T, class... Args>
constexpr Handler handler_of() {
  if constexpr (sizeof...(Args) == 1)
    return &unary<F, T, Args...>;
  else if constexpr (sizeof...(Args) == 2)
    return &binary<F, T, Args...>;
  else
    return &ternary<F, T, Args...>;
}

constexpr int kRoundings[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/// Keeps the compiler from moving the computation of x out of the region where the rounding mode is set.
template <class T>
GPUCTL_INLINE T opaque(T x) {
  asm volatile("" : "+m"(x) : : "memory");
  return x;
}

template <class F, class T, int kArity>
void directed(Context& ctx, const Instruction& in, Mask mask) {
  using S = Slot<T>;
  S* d = at<S>(ctx, in.op[0]);
  const S* a = at<S>(ctx, in.op[1]);
  const S* b = kArity > 1 ? at<S>(ctx, in.op[2]) : a;
  const S* c = kArity > 2 ? at<S>(ctx, in.op[3]) : a;
  const bool ftz = sizeof(T) == 4 && in.sub & 1, sat = in.sub & 2;
  const auto load = [ftz](S s) { return opaque(ftz ? flush(get<T>(s)) : get<T>(s)); };
  std::fesetround(kRoundings[static_cast<int>(in.round)]);
  for (; mask != 0; mask &= mask - 1) {
    const int i = __builtin_ctz(mask);
    T r;
    if constexpr (kArity == 1)
      r = F::apply(load(a[i]));
    else if constexpr (kArity == 2)
      r = F::apply(load(a[i]), load(b[i]));
    else
      r = F::apply(load(a[i]), load(b[i]), load(c[i]));
    r = opaque(r);
    r = ftz ? output<true, false>(r) : output<false, false>(r);
    d[i] = put<T>(sat ? saturate(r) : r);
  }
  std::fesetround(FE_TONEAREST);
}

template <class F, class T, class... Args>
Handler arithmetic(const Selector& s) {
  if (s.round != Round::kNearest) return &directed<F, T, sizeof...(Args)>;
  if constexpr (sizeof(T) == 4) {
    if (s.ftz)
      return s.sat ? handler_of<Wrapped<F, true, true>, T, Args...>()
                   : handler_of<Wrapped<F, true, false>, T, Args...>();
  }
  return s.sat ? handler_of<Wrapped<F, false, true>, T, Args...>() : handler_of<Wrapped<F, false, false>, T, Args...>();
}
template <class F, int kArity>
Handler arithmetic(const Selector& s) {
  return pick<float, double>(s.type, [&](auto t) -> Handler {
    using T = typename decltype(t)::type;
    if constexpr (kArity == 1)
      return arithmetic<F, T, T>(s);
    else if constexpr (kArity == 2)
      return arithmetic<F, T, T, T>(s);
    else
      return arithmetic<F, T, T, T, T>(s);
  });
}
template <class F, int kArity>
Handler bits_only(const Selector& s) {
  return pick<float, double>(s.type, [&](auto t) -> Handler {
    using T = typename decltype(t)::type;
    if constexpr (kArity == 1)
      return s.ftz ? handler_of<BitsOnly<F, true>, T, T>() : handler_of<BitsOnly<F, false>, T, T>();
    else
      return s.ftz ? handler_of<BitsOnly<F, true>, T, T, T>() : handler_of<BitsOnly<F, false>, T, T, T>();
  });
}
template <bool kMax>
Handler min_max(const Selector& s) {
  if (s.nan) return s.xorsign ? bits_only<MinMax<kMax, true, true>, 2>(s) : bits_only<MinMax<kMax, true, false>, 2>(s);
  return s.xorsign ? bits_only<MinMax<kMax, false, true>, 2>(s) : bits_only<MinMax<kMax, false, false>, 2>(s);
}

}  // namespace

Handler select_float(const Selector& s) {
  switch (s.op) {
    case Op::kAdd:
      return arithmetic<Add, 2>(s);
    case Op::kSub:
      return arithmetic<Sub, 2>(s);
    case Op::kMul:
      return arithmetic<Mul, 2>(s);
    case Op::kDiv:
      return arithmetic<Div, 2>(s);
    case Op::kFma:
      return arithmetic<Fma, 3>(s);
    case Op::kSqrt:
      return arithmetic<Sqrt, 1>(s);
    case Op::kRcp:
      return arithmetic<Rcp, 1>(s);
    case Op::kNeg:
      return bits_only<Neg, 1>(s);
    case Op::kAbs:
      return bits_only<Abs, 1>(s);
    case Op::kCopysign:
      return bits_only<Copysign, 2>(s);
    case Op::kMin:
      return min_max<false>(s);
    case Op::kMax:
      return min_max<true>(s);
    default:
      return nullptr;
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
