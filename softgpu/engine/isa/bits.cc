// Bitwise operations, shifts and bit fields.
#include "softgpu/engine/isa/lanes.h"

namespace gpuctl::softgpu::engine::GPUCTL_ISA {
namespace {

struct And {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static GPUCTL_INLINE T apply(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  static GPUCTL_INLINE T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  static GPUCTL_INLINE T apply(T a) {
    return a == 0;
  }
};

// Shift amounts above the width are clamped to it (PTX, not C++).
struct Shl {
  template <class T>
  static GPUCTL_INLINE T apply(T a, U32 b) {
    return b >= sizeof(T) * 8 ? T(0) : static_cast<T>(a << b);
  }
};
struct Shr {
  template <class T>
  static GPUCTL_INLINE T apply(T a, U32 b) {
    constexpr U32 kBits = sizeof(T) * 8;
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(a >> (b >= kBits ? kBits - 1 : b));
    else
      return b >= kBits ? T(0) : static_cast<T>(a >> b);
  }
};

// Funnel shifts: `b` is the high word and `a` the low one.
template <bool kWrap>
struct ShfLeft {
  static GPUCTL_INLINE U32 apply(U32 a, U32 b, U32 c) {
    const U32 n = kWrap ? c & 31 : c > 32 ? 32 : c;
    return static_cast<U32>(((U64(b) << 32 | a) << n) >> 32);
  }
};
template <bool kWrap>
struct ShfRight {
  static GPUCTL_INLINE U32 apply(U32 a, U32 b, U32 c) {
    const U32 n = kWrap ? c & 31 : c > 32 ? 32 : c;
    return static_cast<U32>((U64(b) << 32 | a) >> n);
  }
};

void lop3(Context& ctx, const Instruction& in, Mask mask) {
  U32* d = at<U32>(ctx, in.op[0]);
  const U32* a = at<U32>(ctx, in.op[1]);
  const U32* b = at<U32>(ctx, in.op[2]);
  const U32* c = at<U32>(ctx, in.op[3]);
  U32 term[8];
  for (int k = 0; k < 8; ++k) term[k] = (in.imm >> k) & 1 ? 0xffffffff : 0;
  each(
      mask, [=](int i) __attribute__((always_inline)) {
        const U32 x = a[i], y = b[i], z = c[i];
        d[i] = (term[0] & ~x & ~y & ~z) | (term[1] & ~x & ~y & z) | (term[2] & ~x & y & ~z) | (term[3] & ~x & y & z) |
               (term[4] & x & ~y & ~z) | (term[5] & x & ~y & z) | (term[6] & x & y & ~z) | (term[7] & x & y & z);
      });
}

GPUCTL_INLINE U32 permute(U32 a, U32 b, U32 selector) {
  const U64 bytes = U64(b) << 32 | a;
  U32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const U32 pick = selector >> (4 * i);
    U32 byte = static_cast<U32>(bytes >> (8 * (pick & 7))) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
struct Prmt {
  static GPUCTL_INLINE U32 apply(U32 a, U32 b, U32 c) { return permute(a, b, c); }
};

enum PrmtMode { kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };
void prmt_mode(Context& ctx, const Instruction& in, Mask mask) {
  // One row for each value of the two low selector bits, as permute() selectors.
  static constexpr U32 kSelectors[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                           {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                           {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  U32* d = at<U32>(ctx, in.op[0]);
  const U32* a = at<U32>(ctx, in.op[1]);
  const U32* b = at<U32>(ctx, in.op[2]);
  const U32* c = at<U32>(ctx, in.op[3]);
  each(mask, [=, &in](int i) { d[i] = permute(a[i], b[i], kSelectors[in.sub][c[i] & 3]); });
}

struct Bfe {
  template <class T>
  static GPUCTL_INLINE T apply(T a, U32 b, U32 c) {
    constexpr U32 kBits = sizeof(T) * 8;
    using U = std::make_unsigned_t<T>;
    const U32 pos = b & 0xff, len = c & 0xff;
    if (len == 0) return 0;
    const U sign =
        std::is_signed_v<T> ? (static_cast<U>(a) >> (pos + len - 1 < kBits - 1 ? pos + len - 1 : kBits - 1)) & 1 : U(0);
    const U field = pos >= kBits ? U(0) : static_cast<U>(static_cast<U>(a) >> pos);
    const U32 have = pos >= kBits ? 0 : len < kBits - pos ? len : kBits - pos;
    const U keep = have >= kBits ? ~U(0) : static_cast<U>((U(1) << have) - 1);
    return static_cast<T>((field & keep) | (sign ? static_cast<U>(~keep) : U(0)));
  }
};
template <class T>
void bfi(Context& ctx, const Instruction& in, Mask mask) {  // op: d, a (field), b (into), c (pos); op[4]: len
  constexpr U32 kBits = sizeof(T) * 8;
  T* d = at<T>(ctx, in.op[0]);
  const T* a = at<T>(ctx, in.op[1]);
  const T* b = at<T>(ctx, in.op[2]);
  const U32* c = at<U32>(ctx, in.op[3]);
  const U32* e = at<U32>(ctx, in.op[4]);
  each(mask, [=](int i) {
    const U32 pos = c[i] & 0xff, len = e[i] & 0xff;
    const T ones = len >= kBits ? ~T(0) : static_cast<T>((T(1) << len) - 1);
    const T field = pos >= kBits ? T(0) : static_cast<T>(ones << pos);
    const T value = pos >= kBits ? T(0) : static_cast<T>(a[i] << pos);
    d[i] = (b[i] & ~field) | (value & field);
  });
}

template <class T>
GPUCTL_INLINE U32 leading_zeros(T a) {
  if constexpr (sizeof(T) == 8)
    return a == 0 ? 64 : static_cast<U32>(__builtin_clzll(a));
  else
    return a == 0 ? 32 : static_cast<U32>(__builtin_clz(a));
}
template <bool kShift>
struct Bfind {
  template <class T>
  static GPUCTL_INLINE U32 apply(T a) {
    using U = std::make_unsigned_t<T>;
    const U v = std::is_signed_v<T> && a < 0 ? static_cast<U>(~a) : static_cast<U>(a);
    if (v == 0) return 0xffffffff;
    const U32 zeros = leading_zeros(v);
    return kShift ? zeros : static_cast<U32>(sizeof(T) * 8) - 1 - zeros;
  }
};
struct Brev {
  template <class T>
  static GPUCTL_INLINE T apply(T a) {
    T r = 0;
    for (unsigned i = 0; i < sizeof(T) * 8; ++i) r |= static_cast<T>(((a >> i) & 1) << (sizeof(T) * 8 - 1 - i));
    return r;
  }
};
struct Popc {
  template <class T>
  static GPUCTL_INLINE U32 apply(T a) {
    return static_cast<U32>(__builtin_popcountll(a));
  }
};
struct Clz {
  template <class T>
  static GPUCTL_INLINE U32 apply(T a) {
    return leading_zeros(a);
  }
};
struct Fns {
  static GPUCTL_INLINE U32 apply(U32 mask, U32 base, S32 offset) {
    if (base > 31) return 0xffffffff;
    if (offset == 0) return (mask >> base) & 1 ? base : 0xffffffff;
    const int step = offset > 0 ? 1 : -1;
    S64 left = offset > 0 ? S64(offset) : -S64(offset);
    for (int pos = static_cast<int>(base); pos >= 0 && pos < 32; pos += step)
      if ((mask >> pos) & 1 && --left == 0) return static_cast<U32>(pos);
    return 0xffffffff;
  }
};
template <bool kWrap>
struct Bmsk {
  static GPUCTL_INLINE U32 apply(U32 a, U32 b) {
    const U32 pos = kWrap ? a & 31 : a, len = kWrap ? b & 31 : b;
    const U32 ones = len >= 32 ? 0xffffffff : (1u << len) - 1;
    return pos >= 32 ? 0 : ones << pos;
  }
};
template <bool kWrap>
struct Szext {
  template <class T>
  static GPUCTL_INLINE T apply(T a, U32 b) {
    const U32 n = kWrap ? b & 31 : b;
    if (n >= 32) return a;
    if (n == 0) return 0;
    const U32 up = static_cast<U32>(a) << (32 - n);
    return std::is_signed_v<T> ? static_cast<T>(static_cast<S32>(up) >> (32 - n)) : static_cast<T>(up >> (32 - n));
  }
};

template <class F>
Handler logic(Type type) {
  return pick<U16, U32, U64>(bits_of(type), [](auto t) -> Handler {
    using T = typename decltype(t)::type;
    return &binary<F, T, T, T>;
  });
}
template <class F>
Handler counting(Type type) {
  return pick<U32, U64>(bits_of(type), [](auto t) -> Handler {
    using T = typename decltype(t)::type;
    return &unary<F, U32, T>;
  });
}
template <class F>
Handler finding(Type type) {
  return pick<U32, S32, U64, S64>(type, [](auto t) -> Handler {
    using T = typename decltype(t)::type;
    return &unary<F, U32, T>;
  });
}
template <class F>
Handler on32(Type type) {
  return type == Type::kS32 ? &binary<F, S32, S32, U32> : &binary<F, U32, U32, U32>;
}

}  // namespace

Handler select_bits(const Selector& s) {
  switch (s.op) {
    case Op::kAnd:
      return logic<And>(s.type);
    case Op::kOr:
      return logic<Or>(s.type);
    case Op::kXor:
      return logic<Xor>(s.type);
    case Op::kNot:
      return pick<U16, U32, U64>(bits_of(s.type), [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &unary<Not, T, T>;
      });
    case Op::kCnot:
      return pick<U16, U32, U64>(bits_of(s.type), [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &unary<Cnot, T, T>;
      });
    case Op::kShl:
      return pick<U16, U32, U64>(bits_of(s.type), [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &binary<Shl, T, T, U32>;
      });
    case Op::kShr:
      return pick<U16, U32, U64, S16, S32, S64>(without_bits(s.type), [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &binary<Shr, T, T, U32>;
      });
    case Op::kShfLeftWrap:
      return &ternary<ShfLeft<true>, U32, U32, U32, U32>;
    case Op::kShfLeftClamp:
      return &ternary<ShfLeft<false>, U32, U32, U32, U32>;
    case Op::kShfRightWrap:
      return &ternary<ShfRight<true>, U32, U32, U32, U32>;
    case Op::kShfRightClamp:
      return &ternary<ShfRight<false>, U32, U32, U32, U32>;
    case Op::kLop3:
      return &lop3;
    case Op::kPrmt:
      return &ternary<Prmt, U32, U32, U32, U32>;
    case Op::kPrmtMode:
      return &prmt_mode;
    case Op::kBfe:
      return pick<U32, S32, U64, S64>(s.type, [](auto t) -> Handler {
        using T = typename decltype(t)::type;
        return &ternary<Bfe, T, T, U32, U32>;
      });
    case Op::kBfi:
      return size_of(s.type) == 8 ? &bfi<U64> : &bfi<U32>;
    case Op::kBfind:
      return finding<Bfind<false>>(s.type);
    case Op::kBfindShift:
      return finding<Bfind<true>>(s.type);
    case Op::kBrev:
      return size_of(s.type) == 8 ? &unary<Brev, U64, U64> : &unary<Brev, U32, U32>;
    case Op::kPopc:
      return counting<Popc>(s.type);
    case Op::kClz:
      return counting<Clz>(s.type);
    case Op::kFns:
      return &ternary<Fns, U32, U32, U32, S32>;
    case Op::kBmskClamp:
      return &binary<Bmsk<false>, U32, U32, U32>;
    case Op::kBmskWrap:
      return &binary<Bmsk<true>, U32, U32, U32>;
    case Op::kSzextClamp:
      return on32<Szext<false>>(s.type);
    case Op::kSzextWrap:
      return on32<Szext<true>>(s.type);
    default:
      return nullptr;
  }
}

}  // namespace gpuctl::softgpu::engine::GPUCTL_ISA
