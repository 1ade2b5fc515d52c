// cvt: every pair of integer and floating-point types. Instruction::sub: bit 0 ftz, 1 sat, 2 relu, 3 round a float
// to an integral value of its own or another float type.
#include <limits>

#include "softgpu/engine/isa/rounding.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

constexpr unsigned kFtz = 1, kSat = 2, kRelu = 4, kIntegral = 8;

GPUCTL_INLINE double integral(double x, Round mode) {
  switch (mode) {
    case Round::kNearest:
      return __builtin_rint(x);  // the CPU is in round-to-nearest
    case Round::kZero:
      return __builtin_trunc(x);
    case Round::kDown:
      return __builtin_floor(x);
    case Round::kUp:
      return __builtin_ceil(x);
    case Round::kAway:
      return __builtin_round(x);
  }
  return x;
}

template <class D, class S>
struct IntegerToInteger {
  static GPUCTL_INLINE D apply(S v, Round, unsigned sub) {
    if (sub & kSat) {
      using Limits = std::numeric_limits<D>;
      const Int128 wide = v;
      if (wide < Limits::min()) return Limits::min();
      if (wide > Limits::max()) return Limits::max();
    }
    return static_cast<D>(v);
  }
};

template <class D, class S>
struct IntegerToFloat {
  static GPUCTL_INLINE D apply(S v, Round mode, unsigned sub) {
    D r;
    const bool negative = v < 0;
    const U64 magnitude = negative ? -static_cast<U64>(v) : static_cast<U64>(v);
    if constexpr (std::is_floating_point_v<D>) {
      r = mode == Round::kNearest ? static_cast<D>(v)
          : magnitude == 0        ? D(0)
                                  : round_pack<D>(negative, magnitude, 0, mode);
      if (sub & kSat) r = r > D(0) ? (r < D(1) ? r : D(1)) : D(0);
    } else {
      r = magnitude == 0 ? D{0} : round_pack<D>(negative, magnitude, 0, mode);
      if (sub & kSat) r = value_of(r) > 0 ? (value_of(r) < 1 ? r : narrow<D>(1, Round::kZero)) : D{0};
    }
    return r;
  }
};

/// Values out of range are clamped. A NaN gives zero; from double and to 64 bits it gives the hardware's pattern, the
/// top bit.
template <class D, class S>
struct FloatToInteger {
  static GPUCTL_INLINE D apply(S v, Round mode, unsigned sub) {
    if constexpr (sizeof(S) == 4)
      if (sub & kFtz) v = flush(v);
    const double x = value_of(v);
    if (x != x) {
      if constexpr (sizeof(D) == 8 || (sizeof(S) == 8 && sizeof(D) == 4))
        return static_cast<D>(U64(1) << (sizeof(D) * 8 - 1));
      return 0;
    }
    const double r = integral(x, mode);
    using Limits = std::numeric_limits<D>;
    constexpr double kPastMax = static_cast<double>(U64(1) << (sizeof(D) * 8 - 1)) * (std::is_signed_v<D> ? 1 : 2);
    if (r >= kPastMax) return Limits::max();
    if (r <= static_cast<double>(Limits::min())) return Limits::min();
    if constexpr (sizeof(D) == 8 && !std::is_signed_v<D>)
      return static_cast<D>(r);
    else
      return static_cast<D>(static_cast<S64>(r));
  }
};

template <class D, class S>
struct FloatToFloat {
  static GPUCTL_INLINE D apply(S v, Round mode, unsigned sub) {
    if constexpr (sizeof(S) == 4)
      if (sub & kFtz) v = flush(v);
    double x = value_of(v);
    if (sub & kIntegral) x = integral(x, mode);
    if (x != x) {
      if (sub & kSat) return narrow<D>(0, mode);
      if constexpr (sizeof(D) == 8 && sizeof(S) == 8) return v;
      if constexpr (sizeof(D) == 8) return x;
      return canonical_nan<D>();
    }
    if (sub & kSat) x = x > 0 ? (x < 1 ? x : 1) : 0;
    if ((sub & kRelu) && !(x > 0)) x = 0;
    D r;
    if constexpr (sizeof(D) == 8)
      r = x;
    else if constexpr (sizeof(D) == 4)
      r = mode == Round::kNearest || sizeof(S) <= 4 ? static_cast<float>(x) : narrow<float>(x, mode);
    else
      r = narrow<D>(x, mode);
    if constexpr (sizeof(D) == 4)
      if (sub & kFtz) r = flush(r);
    return r;
  }
};

template <class T>
inline constexpr bool kIsInteger = std::is_integral_v<T>;

template <class D, class S>
void convert(Context& ctx, const Instruction& in, Mask mask) {
  using F =
      std::conditional_t<kIsInteger<D>, std::conditional_t<kIsInteger<S>, IntegerToInteger<D, S>, FloatToInteger<D, S>>,
                         std::conditional_t<kIsInteger<S>, IntegerToFloat<D, S>, FloatToFloat<D, S>>>;
  Slot<D>* d = at<Slot<D>>(ctx, in.op[0]);
  const Slot<S>* a = at<Slot<S>>(ctx, in.op[1]);
  const unsigned sub = in.sub;
  const Round mode = in.round;
  if constexpr (kIsInteger<D> && kIsInteger<S>) {
    if (!(sub & kSat)) {
      each(
          mask, [=](int i) __attribute__((always_inline)) { d[i] = put<D>(static_cast<D>(get<S>(a[i]))); });
      return;
    }
  } else if constexpr (kIsInteger<S> && std::is_floating_point_v<D>) {
    if (sub == 0 && mode == Round::kNearest) {
      each(
          mask, [=](int i) __attribute__((always_inline)) { d[i] = put<D>(static_cast<D>(get<S>(a[i]))); });
      return;
    }
  }
  each(mask, [=](int i) { d[i] = put<D>(F::apply(get<S>(a[i]), mode, sub)); });
}

/// cvt.rn.f16x2.f32 d, a, b: a to the upper half, b to the lower.
template <class H>
void convert_pair(Context& ctx, const Instruction& in, Mask mask) {
  U32* d = at<U32>(ctx, in.op[0]);
  const U32 *a = at<U32>(ctx, in.op[1]), *b = at<U32>(ctx, in.op[2]);
  const auto one = [&in](U32 s) { return U32(FloatToFloat<H, float>::apply(get<float>(s), in.round, in.sub).bits); };
  each(mask, [=](int i) { d[i] = one(a[i]) << 16 | one(b[i]); });
}

}  // namespace

Handler select_convert(const Selector& s) {
  if (s.op == Op::kCvtPack) return s.type == Type::kF16x2 ? &convert_pair<Half> : &convert_pair<Bfloat>;
  if (s.op != Op::kCvt) return nullptr;
  return pick<U8, U16, U32, U64, S8, S16, S32, S64, Half, Bfloat, float, double>(
      without_bits(s.type), [&](auto d) -> Handler {
        using D = typename decltype(d)::type;
        return pick<U8, U16, U32, U64, S8, S16, S32, S64, Half, Bfloat, float, double>(
            without_bits(s.from), [](auto t) -> Handler { return &convert<D, typename decltype(t)::type>; });
      });
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
