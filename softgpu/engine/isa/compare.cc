// setp, set and testp: comparisons give a mask of lanes, which is then combined as a whole.
#include "softgpu/engine/isa/rounding.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

template <class T>
GPUCTL_INLINE auto comparable(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return x;
  else
    return value_of(x);
}

template <class T, bool kFtz, class F>
GPUCTL_INLINE Mask compare_with(const Slot<T>* a, const Slot<T>* b, Mask mask, int shift, F f) {
  Mask result = 0;
  each(
      mask, [&](int i) __attribute__((always_inline)) {
        T x = get<T>(a[i] >> shift), y = get<T>(b[i] >> shift);
        if constexpr (kFtz) x = flush(x), y = flush(y);
        result |= Mask(f(comparable(x), comparable(y))) << i;
      });
  return result;
}

template <class T, bool kFtz>
Mask compare_lanes(const Slot<T>* a, const Slot<T>* b, Mask mask, Compare compare, int shift = 0) {
  const auto run = [=](auto f) { return compare_with<T, kFtz>(a, b, mask, shift, f); };
  switch (compare) {
    case Compare::kEq:
      return run([](auto x, auto y) { return x == y; });
    case Compare::kNe:
      if constexpr (std::is_integral_v<T>)
        return run([](auto x, auto y) { return x != y; });
      else
        return run([](auto x, auto y) { return x < y || x > y; });
    case Compare::kLt:
      return run([](auto x, auto y) { return x < y; });
    case Compare::kLe:
      return run([](auto x, auto y) { return x <= y; });
    case Compare::kGt:
      return run([](auto x, auto y) { return x > y; });
    case Compare::kGe:
      return run([](auto x, auto y) { return x >= y; });
    case Compare::kEqu:
      return run([](auto x, auto y) { return !(x < y || x > y); });
    case Compare::kNeu:
      return run([](auto x, auto y) { return x != y; });
    case Compare::kLtu:
      return run([](auto x, auto y) { return !(x >= y); });
    case Compare::kLeu:
      return run([](auto x, auto y) { return !(x > y); });
    case Compare::kGtu:
      return run([](auto x, auto y) { return !(x <= y); });
    case Compare::kGeu:
      return run([](auto x, auto y) { return !(x < y); });
    case Compare::kNum:
      return run([](auto x, auto y) { return x == x && y == y; });
    case Compare::kNan:
      return run([](auto x, auto y) { return x != x || y != y; });
  }
  return 0;
}

GPUCTL_INLINE Mask combined(Context& ctx, const Instruction& in, Mask result, OperandRef with) {
  switch (in.combine) {
    case Combine::kNone:
      return result;
    case Combine::kAnd:
      return result & read_pred(ctx, with);
    case Combine::kOr:
      return result | read_pred(ctx, with);
    case Combine::kXor:
      return result ^ read_pred(ctx, with);
  }
  return result;
}

/// op: p, a, b, c (predicate to combine with), q
template <class T, bool kFtz>
void setp(Context& ctx, const Instruction& in, Mask mask) {
  const Mask r = compare_lanes<T, kFtz>(at<Slot<T>>(ctx, in.op[1]), at<Slot<T>>(ctx, in.op[2]), mask, in.compare);
  const Mask p = combined(ctx, in, r, in.op[3]), q = combined(ctx, in, ~r, in.op[3]);
  write_pred(ctx, in.op[0], mask, p);
  write_pred(ctx, in.op[4], mask, q);
}

/// The same for pairs: p is the result for the low halves, q for the high ones.
template <class H, bool kFtz>
void setp_pair(Context& ctx, const Instruction& in, Mask mask) {
  const U32 *a = at<U32>(ctx, in.op[1]), *b = at<U32>(ctx, in.op[2]);
  const Mask low = compare_lanes<H, kFtz>(a, b, mask, in.compare),
             high = compare_lanes<H, kFtz>(a, b, mask, in.compare, 16);
  const Mask p = combined(ctx, in, low, in.op[3]), q = combined(ctx, in, high, in.op[3]);
  write_pred(ctx, in.op[0], mask, p);
  write_pred(ctx, in.op[4], mask, q);
}

/// `imm` holds the value of true, for the whole register or for each half of a pair.
template <class T, bool kFtz>
void set(Context& ctx, const Instruction& in, Mask mask) {
  const Mask r = compare_lanes<T, kFtz>(at<Slot<T>>(ctx, in.op[1]), at<Slot<T>>(ctx, in.op[2]), mask, in.compare);
  const Mask p = combined(ctx, in, r, in.op[3]);
  U32* d = at<U32>(ctx, in.op[0]);
  each(mask, [=, &in](int i) { d[i] = (p >> i) & 1 ? static_cast<U32>(in.imm) : 0; });
}
template <class H, bool kFtz>
void set_pair(Context& ctx, const Instruction& in, Mask mask) {
  const U32 *a = at<U32>(ctx, in.op[1]), *b = at<U32>(ctx, in.op[2]);
  const Mask low = compare_lanes<H, kFtz>(a, b, mask, in.compare),
             high = compare_lanes<H, kFtz>(a, b, mask, in.compare, 16);
  const Mask p = combined(ctx, in, low, in.op[3]), q = combined(ctx, in, high, in.op[3]);
  U32* d = at<U32>(ctx, in.op[0]);
  const U32 yes = static_cast<U32>(in.imm) & 0xffff;
  each(mask, [=](int i) { d[i] = ((p >> i) & 1 ? yes : 0) | ((q >> i) & 1 ? yes << 16 : 0); });
}

enum Test { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };  // Instruction::sub
template <class T>
void testp(Context& ctx, const Instruction& in, Mask mask) {
  const Slot<T>* a = at<Slot<T>>(ctx, in.op[1]);
  constexpr U64 kInf = U64(2 * Format<T>::kEmax + 1) << (Format<T>::kPrecision - 1);
  constexpr U64 kLeastNormal = U64(1) << (Format<T>::kPrecision - 1);
  Mask result = 0;
  each(mask, [&](int i) {
    const U64 v = a[i] & ~(U64(1) << (sizeof(T) * 8 - 1));
    bool r = false;
    switch (in.sub) {
      case kFinite:
        r = v < kInf;
        break;
      case kInfinite:
        r = v == kInf;
        break;
      case kNumber:
        r = v <= kInf;
        break;
      case kNotANumber:
        r = v > kInf;
        break;
      case kNormal:
        r = v >= kLeastNormal && v < kInf;
        break;
      case kSubnormal:
        r = v != 0 && v < kLeastNormal;
        break;
    }
    result |= Mask(r) << i;
  });
  write_pred(ctx, in.op[0], mask, result);
}

template <class T>
Handler comparison(const Selector& s) {
  const bool p = s.op == Op::kSetp;
  if constexpr (!std::is_integral_v<T> && sizeof(T) <= 4)
    if (s.ftz) return p ? &setp<T, true> : &set<T, true>;
  return p ? &setp<T, false> : &set<T, false>;
}
template <class H>
Handler pair_comparison(const Selector& s) {
  const bool p = s.op == Op::kSetp;
  if (s.ftz) return p ? &setp_pair<H, true> : &set_pair<H, true>;
  return p ? &setp_pair<H, false> : &set_pair<H, false>;
}

}  // namespace

Handler select_compare(const Selector& s) {
  switch (s.op) {
    case Op::kSetp:
    case Op::kSet:
      if (s.type == Type::kF16x2) return pair_comparison<Half>(s);
      if (s.type == Type::kBf16x2) return pair_comparison<Bfloat>(s);
      return pick<U16, U32, U64, S16, S32, S64, Half, Bfloat, float, double>(
          without_bits(s.type), [&](auto t) -> Handler { return comparison<typename decltype(t)::type>(s); });
    case Op::kTestp:
      return s.type == Type::kF64 ? &testp<double> : s.type == Type::kF32 ? &testp<float> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
