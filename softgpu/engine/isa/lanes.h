// Applying a scalar function to the lanes of a warp. Everything here lives in the namespace of the instruction set it
// is compiled for, so that no function compiled for a newer one is ever shared with the baseline.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "softgpu/engine/context.h"
#include "softgpu/engine/isa/select.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {

#define GPUCTL_INLINE __attribute__((always_inline)) inline

/// IEEE half and bfloat16 as bits; arithmetic is in half.cc.
struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};

template <class T>
using Slot = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
GPUCTL_INLINE T get(Slot<T> slot) {
  if constexpr (std::is_floating_point_v<T>)
    return __builtin_bit_cast(T, slot);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(slot);
  else
    return T{static_cast<std::uint16_t>(slot)};
}

template <class T>
GPUCTL_INLINE Slot<T> put(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return __builtin_bit_cast(Slot<T>, value);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<Slot<T>>(value);
  else
    return value.bits;
}

template <class T>
GPUCTL_INLINE T* at(Context& ctx, OperandRef ref) {
  return reinterpret_cast<T*>(ctx.base[ref >> 30] + (ref & 0x3fffffff));
}

GPUCTL_INLINE Mask read_pred(Context& ctx, OperandRef ref) {
  return *at<Mask>(ctx, ref);
}
GPUCTL_INLINE void write_pred(Context& ctx, OperandRef ref, Mask mask, Mask value) {
  if (ref == kNoOperand) return;
  Mask& pred = *at<Mask>(ctx, ref);
  pred = (pred & ~mask) | (value & mask);
}

/// Calls f(lane) for each lane of the mask. Lanes are independent of each other: outputs either are an input array
/// lane by lane or do not overlap it.
template <class F>
GPUCTL_INLINE void each(Mask mask, F f) {
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (int i = 0; i < kLanes; ++i) f(i);
  } else {
    for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
  }
}

template <class F, class D, class A>
void unary(Context& ctx, const Instruction& in, Mask mask) {
  Slot<D>* d = at<Slot<D>>(ctx, in.op[0]);
  const Slot<A>* a = at<Slot<A>>(ctx, in.op[1]);
  each(
      mask, [=](int i) __attribute__((always_inline)) { d[i] = put<D>(F::apply(get<A>(a[i]))); });
}

template <class F, class D, class A, class B>
void binary(Context& ctx, const Instruction& in, Mask mask) {
  Slot<D>* d = at<Slot<D>>(ctx, in.op[0]);
  const Slot<A>* a = at<Slot<A>>(ctx, in.op[1]);
  const Slot<B>* b = at<Slot<B>>(ctx, in.op[2]);
  each(
      mask, [=](int i) __attribute__((always_inline)) { d[i] = put<D>(F::apply(get<A>(a[i]), get<B>(b[i]))); });
}

template <class F, class D, class A, class B, class C>
void ternary(Context& ctx, const Instruction& in, Mask mask) {
  Slot<D>* d = at<Slot<D>>(ctx, in.op[0]);
  const Slot<A>* a = at<Slot<A>>(ctx, in.op[1]);
  const Slot<B>* b = at<Slot<B>>(ctx, in.op[2]);
  const Slot<C>* c = at<Slot<C>>(ctx, in.op[3]);
  each(
      mask, [=](int i)
                __attribute__((always_inline)) { d[i] = put<D>(F::apply(get<A>(a[i]), get<B>(b[i]), get<C>(c[i]))); });
}

/// Handlers of one operation for several types: `pick<U32, S32>(type, [](auto t) { return &unary<...>; })`.
template <class T>
struct Tag {
  using type = T;
};

template <class T>
inline constexpr Type type_of = Type::kNone;
template <>
inline constexpr Type type_of<std::uint8_t> = Type::kU8;
template <>
inline constexpr Type type_of<std::uint16_t> = Type::kU16;
template <>
inline constexpr Type type_of<std::uint32_t> = Type::kU32;
template <>
inline constexpr Type type_of<std::uint64_t> = Type::kU64;
template <>
inline constexpr Type type_of<std::int8_t> = Type::kS8;
template <>
inline constexpr Type type_of<std::int16_t> = Type::kS16;
template <>
inline constexpr Type type_of<std::int32_t> = Type::kS32;
template <>
inline constexpr Type type_of<std::int64_t> = Type::kS64;
template <>
inline constexpr Type type_of<float> = Type::kF32;
template <>
inline constexpr Type type_of<double> = Type::kF64;
template <>
inline constexpr Type type_of<Half> = Type::kF16;
template <>
inline constexpr Type type_of<Bfloat> = Type::kBf16;

template <class... Ts, class F>
Handler pick(Type type, F f) {
  Handler handler = nullptr;
  ((type == type_of<Ts> ? (void)(handler = f(Tag<Ts>{})) : (void)0), ...);
  return handler;
}

using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;
using S8 = std::int8_t;
using S16 = std::int16_t;
using S32 = std::int32_t;
using S64 = std::int64_t;
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

Handler select_move(const Selector& s);
Handler select_integer(const Selector& s);
Handler select_bits(const Selector& s);
Handler select_float(const Selector& s);
Handler select_half(const Selector& s);
Handler select_approx(const Selector& s);
Handler select_compare(const Selector& s);
Handler select_convert(const Selector& s);
Handler select_memory(const Selector& s);
Handler select_atomic(const Selector& s);

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
