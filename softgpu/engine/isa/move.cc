// Moving bits between registers, predicates, address windows and clocks.
#include "softgpu/engine/isa/lanes.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

template <class D, class S>
struct Cast {
  static GPUCTL_INLINE D apply(S a) { return static_cast<D>(a); }
};

/// Narrow registers op[1..count] into one wide op[0], lowest first; unpack the other way.
template <class D, int kCount>
void pack(Context& ctx, const Instruction& in, Mask mask) {
  constexpr int kBits = sizeof(D) * 8 / kCount;
  constexpr U64 kKeep = (U64(1) << kBits) - 1;
  D* d = at<D>(ctx, in.op[0]);
  const U32* a[kCount];
  for (int k = 0; k < kCount; ++k) a[k] = at<U32>(ctx, in.op[1 + k]);
  each(mask, [&](int i) {
    U64 r = 0;
    for (int k = 0; k < kCount; ++k) r |= (a[k][i] & kKeep) << (k * kBits);
    d[i] = static_cast<D>(r);
  });
}
template <class S, int kCount>
void unpack(Context& ctx, const Instruction& in, Mask mask) {  // op[0..count-1] from op[4]
  constexpr int kBits = sizeof(S) * 8 / kCount;
  constexpr U64 kKeep = (U64(1) << kBits) - 1;
  const S* a = at<S>(ctx, in.op[4]);
  U32* d[kCount];
  for (int k = 0; k < kCount; ++k) d[k] = at<U32>(ctx, in.op[k]);
  each(mask, [&](int i) {
    const U64 v = a[i];
    for (int k = 0; k < kCount; ++k) d[k][i] = static_cast<U32>((v >> (k * kBits)) & kKeep);
  });
}

/// The offset of a variable of the current call in the local window, as ld.local and cvta.local take it.
void frame_offset(Context& ctx, const Instruction& in, Mask mask) {
  U64* d = at<U64>(ctx, in.op[0]);
  const U32* frame = ctx.local_frame;
  each(mask, [=, &in](int i) { d[i] = frame[i] + static_cast<U64>(in.imm); });
}
/// Its generic address, and that of a kernel parameter, as ld.param takes them from a register.
void frame_address(Context& ctx, const Instruction& in, Mask mask) {
  U64* d = at<U64>(ctx, in.op[0]);
  const U64 begin = reinterpret_cast<U64>(ctx.local), stride = ctx.local_bytes;
  const U32* frame = ctx.local_frame;
  each(mask, [=, &in](int i) { d[i] = begin + stride * static_cast<U64>(i) + frame[i] + static_cast<U64>(in.imm); });
}
void param_address(Context& ctx, const Instruction& in, Mask mask) {
  U64* d = at<U64>(ctx, in.op[0]);
  each(mask, [=, &ctx, &in](int i) { d[i] = reinterpret_cast<U64>(ctx.params) + static_cast<U64>(in.imm); });
}

/// Window offset to generic address (kTo false) or back.
template <bool kLocal, bool kTo>
void convert_address(Context& ctx, const Instruction& in, Mask mask) {
  U64* d = at<U64>(ctx, in.op[0]);
  const U64* a = at<U64>(ctx, in.op[1]);
  const U64 begin = reinterpret_cast<U64>(kLocal ? ctx.local : ctx.shared), stride = kLocal ? ctx.local_bytes : 0;
  each(mask, [=](int i) {
    const U64 base = begin + stride * static_cast<U64>(i);
    d[i] = kTo ? a[i] - base : a[i] + base;
  });
}

enum Window { kInShared, kInLocal, kInParam, kInGlobal };
template <Window kWindow>
void is_in(Context& ctx, const Instruction& in, Mask mask) {
  const U64* a = at<U64>(ctx, in.op[1]);
  const U64 shared = reinterpret_cast<U64>(ctx.shared), local = reinterpret_cast<U64>(ctx.local);
  const U64 params = reinterpret_cast<U64>(ctx.params);
  Mask result = 0;
  each(mask, [&](int i) {
    const bool in_shared = a[i] - shared < ctx.shared_bytes;
    const bool in_local = a[i] - local - U64(ctx.local_bytes) * static_cast<U64>(i) < ctx.local_bytes;
    const bool in_param = a[i] - params < ctx.param_bytes;
    const bool r = kWindow == kInShared  ? in_shared
                   : kWindow == kInLocal ? in_local
                   : kWindow == kInParam ? in_param
                                         : !in_shared && !in_local && !in_param;
    result |= Mask(r) << i;
  });
  write_pred(ctx, in.op[0], mask, result);
}

template <class T, bool kHigh>
void clock(Context& ctx, const Instruction& in, Mask mask) {
  T* d = at<T>(ctx, in.op[0]);
  const U64 now = clock_ns();
  const T value = static_cast<T>(kHigh ? now >> 32 : now);
  each(mask, [=](int i) { d[i] = value; });
}

template <class T>
void selp(Context& ctx, const Instruction& in, Mask mask) {
  T* d = at<T>(ctx, in.op[0]);
  const T *a = at<T>(ctx, in.op[1]), *b = at<T>(ctx, in.op[2]);
  const Mask p = read_pred(ctx, in.op[3]);
  each(
      mask, [=](int i) __attribute__((always_inline)) { d[i] = (p >> i) & 1 ? a[i] : b[i]; });
}
template <class T, class C>
void slct(Context& ctx, const Instruction& in, Mask mask) {
  T* d = at<T>(ctx, in.op[0]);
  const T *a = at<T>(ctx, in.op[1]), *b = at<T>(ctx, in.op[2]);
  const U32* c = at<U32>(ctx, in.op[3]);
  const bool ftz = in.sub & 1;
  each(mask, [=](int i) {
    C v = get<C>(c[i]);
    if constexpr (std::is_floating_point_v<C>)
      if (ftz && (c[i] & 0x7f800000) == 0) v = 0;
    d[i] = v >= C(0) ? a[i] : b[i];
  });
}

enum Logic { kCopy, kInvert, kAnd, kOr, kXor };
template <Logic kLogic>
void predicate(Context& ctx, const Instruction& in, Mask mask) {
  const Mask a = read_pred(ctx, in.op[1]);
  const Mask b = kLogic >= kAnd ? read_pred(ctx, in.op[2]) : 0;
  const Mask r = kLogic == kCopy ? a : kLogic == kInvert ? ~a : kLogic == kAnd ? a & b : kLogic == kOr ? a | b : a ^ b;
  write_pred(ctx, in.op[0], mask, r);
}

}  // namespace

Handler select_move(const Selector& s) {
  const bool wide = size_of(s.type) == 8;
  if (s.type == Type::kPred) {
    switch (s.op) {
      case Op::kMov:
        return &predicate<kCopy>;
      case Op::kNot:
        return &predicate<kInvert>;
      case Op::kAnd:
        return &predicate<kAnd>;
      case Op::kOr:
        return &predicate<kOr>;
      case Op::kXor:
        return &predicate<kXor>;
      default:
        return nullptr;
    }
  }
  switch (s.op) {
    case Op::kMov:
      return wide ? &unary<Cast<U64, U64>, U64, U64> : &unary<Cast<U32, U32>, U32, U32>;
    case Op::kWiden:
      return &unary<Cast<U64, U32>, U64, U32>;
    case Op::kWidenSigned:
      return &unary<Cast<S64, S32>, S64, S32>;
    case Op::kNarrow:
      return &unary<Cast<U32, U64>, U32, U64>;
    case Op::kPack:
      return wide ? (s.count == 2   ? &pack<U64, 2>
                     : s.count == 4 ? &pack<U64, 4>
                                    : nullptr)
                  : (s.count == 2   ? &pack<U32, 2>
                     : s.count == 4 ? &pack<U32, 4>
                                    : nullptr);
    case Op::kUnpack:
      return wide ? (s.count == 2   ? &unpack<U64, 2>
                     : s.count == 4 ? &unpack<U64, 4>
                                    : nullptr)
                  : (s.count == 2   ? &unpack<U32, 2>
                     : s.count == 4 ? &unpack<U32, 4>
                                    : nullptr);
    case Op::kFrameOffset:
      return &frame_offset;
    case Op::kFrameAddress:
      return &frame_address;
    case Op::kParamAddress:
      return &param_address;
    case Op::kToShared:
      return &convert_address<false, true>;
    case Op::kFromShared:
      return &convert_address<false, false>;
    case Op::kToLocal:
      return &convert_address<true, true>;
    case Op::kFromLocal:
      return &convert_address<true, false>;
    case Op::kIsShared:
      return &is_in<kInShared>;
    case Op::kIsLocal:
      return &is_in<kInLocal>;
    case Op::kIsParam:
      return &is_in<kInParam>;
    case Op::kIsGlobal:
      return &is_in<kInGlobal>;
    case Op::kClock:
      return wide ? &clock<U64, false> : &clock<U32, false>;
    case Op::kClockHigh:
      return &clock<U32, true>;
    case Op::kSelp:
      return wide ? &selp<U64> : &selp<U32>;
    case Op::kSlct:
      if (s.from == Type::kF32) return wide ? &slct<U64, float> : &slct<U32, float>;
      return wide ? &slct<U64, S32> : &slct<U32, S32>;
    default:
      return nullptr;
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
