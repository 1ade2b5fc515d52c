// Rounds exact values to floating-point formats, in every rounding mode, with integer arithmetic.
#pragma once

#include "softgpu/engine/isa/lanes.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {

/// A binary format: precision with the hidden bit, and the greatest exponent.
template <class T>
struct Format;
template <>
struct Format<Half> {
  static constexpr int kPrecision = 11, kEmax = 15;
  using Bits = U16;
};
template <>
struct Format<Bfloat> {
  static constexpr int kPrecision = 8, kEmax = 127;
  using Bits = U16;
};
template <>
struct Format<float> {
  static constexpr int kPrecision = 24, kEmax = 127;
  using Bits = U32;
};
template <>
struct Format<double> {
  static constexpr int kPrecision = 53, kEmax = 1023;
  using Bits = U64;
};

template <class T>
GPUCTL_INLINE T from_bits(U64 bits) {
  if constexpr (std::is_floating_point_v<T>)
    return __builtin_bit_cast(T, static_cast<typename Format<T>::Bits>(bits));
  else
    return T{static_cast<U16>(bits)};
}
template <class T>
GPUCTL_INLINE U64 to_bits(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return __builtin_bit_cast(typename Format<T>::Bits, v);
  else
    return v.bits;
}

/// The NaN that arithmetic gives: all bits set but the sign, except for double, where it is the hardware's.
template <class T>
GPUCTL_INLINE T canonical_nan() {
  if constexpr (std::is_same_v<T, double>)
    return from_bits<T>(0xfff8000000000000);
  else if constexpr (std::is_same_v<T, float>)
    return from_bits<T>(0x7fffffff);
  else
    return T{0x7fff};
}

/// (-1)^sign * m * 2^e rounded to T, m not zero.
template <class T>
T round_pack(bool sign, U64 m, int e, Round mode) {
  constexpr int kP = Format<T>::kPrecision, kEmax = Format<T>::kEmax, kEmin = 1 - kEmax;
  constexpr U64 kInf = U64(2 * kEmax + 1) << (kP - 1);
  const int zeros = __builtin_clzll(m);
  m <<= zeros;
  e -= zeros;
  const int top = e + 63;  // exponent of the leading bit
  const int quantum = (top < kEmin ? kEmin : top) - (kP - 1);
  const int shift = quantum - e;  // at least 64 - kP
  const U64 kept = shift > 63 ? 0 : m >> shift;
  const U64 rest = shift > 63 ? 1 : m << (64 - shift);    // the bits cut off, left aligned; beyond 63: below one half,
  const bool at_half = shift == 64 && m == U64(1) << 63;  // but for a shift of exactly 64
  const bool above_half = shift == 64 ? m > U64(1) << 63 : shift < 64 && rest > U64(1) << 63;
  const bool half = shift < 64 ? rest == U64(1) << 63 : at_half;
  bool up = false;
  switch (mode) {
    case Round::kNearest:
      up = above_half || (half && (kept & 1));
      break;
    case Round::kAway:
      up = above_half || half;
      break;
    case Round::kZero:
      break;
    case Round::kDown:
      up = sign && rest != 0;
      break;
    case Round::kUp:
      up = !sign && rest != 0;
      break;
  }
  U64 bits = kept + up;  // a carry moves on into the exponent by itself
  if (top >= kEmin) bits += U64(top + kEmax - 1) << (kP - 1);
  if (top > kEmax || bits >= kInf) {
    const bool infinite = mode == Round::kNearest || mode == Round::kAway || (mode == Round::kUp && !sign) ||
                          (mode == Round::kDown && sign);
    bits = infinite ? kInf : kInf - 1;
  }
  constexpr int kSignBit = sizeof(T) * 8 - 1;
  return from_bits<T>(bits | U64(sign) << kSignBit);
}

/// A double rounded to T.
template <class T>
T narrow(double x, Round mode) {
  const U64 bits = __builtin_bit_cast(U64, x);
  const bool sign = bits >> 63;
  const int exponent = static_cast<int>(bits >> 52) & 0x7ff;
  const U64 fraction = bits & 0xfffffffffffff;
  constexpr int kP = Format<T>::kPrecision, kEmax = Format<T>::kEmax;
  if (exponent == 0x7ff) {
    if (fraction != 0) return canonical_nan<T>();
    return from_bits<T>(U64(2 * kEmax + 1) << (kP - 1) | U64(sign) << (sizeof(T) * 8 - 1));
  }
  if (exponent == 0 && fraction == 0) return from_bits<T>(U64(sign) << (sizeof(T) * 8 - 1));
  const U64 m = exponent == 0 ? fraction : fraction | U64(1) << 52;
  return round_pack<T>(sign, m, (exponent == 0 ? 1 : exponent) - 1075, mode);
}

GPUCTL_INLINE float value_of(float x) {
  return x;
}
GPUCTL_INLINE double value_of(double x) {
  return x;
}
GPUCTL_INLINE float value_of(Bfloat x) {
  return __builtin_bit_cast(float, U32(x.bits) << 16);
}
GPUCTL_INLINE float value_of(Half x) {
  const U32 sign = U32(x.bits & 0x8000) << 16, magnitude = x.bits & 0x7fff;
  if (magnitude >= 0x7c00) return __builtin_bit_cast(float, sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // Scaling by 2^112 moves the exponent bias; exact for subnormals too.
  const float scaled = __builtin_bit_cast(float, magnitude << 13) * 0x1p112f;
  return __builtin_bit_cast(float, __builtin_bit_cast(U32, scaled) | sign);
}

template <class T>
GPUCTL_INLINE bool is_nan(T x) {
  const auto v = value_of(x);
  return v != v;
}

/// Turns subnormals into zero of the same sign.
template <class T>
GPUCTL_INLINE T flush(T x) {
  constexpr U64 kExponent = U64(2 * Format<T>::kEmax + 1) << (Format<T>::kPrecision - 1);
  constexpr U64 kSign = U64(1) << (sizeof(T) * 8 - 1);
  const U64 bits = to_bits(x);
  return (bits & kExponent) == 0 ? from_bits<T>(bits & kSign) : x;
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
