// Compares integer and bitwise instructions with the same operations computed here, over edge values and random ones.
#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine::integer_test {
namespace {

using testing::run_elementwise;

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;
template <class T>
using Wide = std::conditional_t<std::is_signed_v<T>, Signed128, Unsigned128>;

template <class T>
std::vector<T> samples(unsigned seed) {
  using Limits = std::numeric_limits<T>;
  const T edges[] = {T(0),  T(1),  T(2),          T(7),          T(31), T(32), T(33),
                     T(63), T(64), Limits::max(), Limits::min(), T(-1), T(-2), T(Limits::max() / 2)};
  std::mt19937_64 random(seed);
  std::vector<T> values;
  for (int i = 0; i < 640; ++i) {
    if (random() % 2 == 0)
      values.push_back(edges[random() % std::size(edges)]);
    else
      values.push_back(static_cast<T>(random() >> (random() % 64)));
  }
  return values;
}

template <class Out, class In>
void check(const std::string& type, const std::string& out_type, const std::string& body,
           std::function<Out(In, In, In)> expected) {
  const auto a = samples<In>(1), b = samples<In>(2), c = samples<In>(3);
  const auto out = run_elementwise<Out>(type, out_type, body, a, b, c);
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(expected(a[i], b[i], c[i]), out[i]) << body << " of " << +a[i] << ", " << +b[i] << ", " << +c[i];
}

template <class T>
void check_type(const std::string& t) {
  using U = std::make_unsigned_t<T>;
  constexpr unsigned kBits = sizeof(T) * 8;
  const auto same = [&](const std::string& op, std::function<T(T, T, T)> f) { check<T, T>(t, t, op, f); };
  same("add." + t + " %d, %a, %b;", [](T a, T b, T) { return T(U(a) + U(b)); });
  same("sub." + t + " %d, %a, %b;", [](T a, T b, T) { return T(U(a) - U(b)); });
  same("mul.lo." + t + " %d, %a, %b;", [](T a, T b, T) { return T(std::uint64_t(a) * std::uint64_t(b)); });
  same("mul.hi." + t + " %d, %a, %b;", [](T a, T b, T) { return T((Wide<T>(a) * Wide<T>(b)) >> kBits); });
  same("mad.lo." + t + " %d, %a, %b, %c;",
       [](T a, T b, T c) { return T(std::uint64_t(a) * std::uint64_t(b) + std::uint64_t(c)); });
  same("mad.hi." + t + " %d, %a, %b, %c;",
       [](T a, T b, T c) { return T(U((Wide<T>(a) * Wide<T>(b)) >> kBits) + U(c)); });
  same("div." + t + " %d, %a, %b;", [](T a, T b, T) {
    if (b == 0) return T(-1);
    if (std::is_signed_v<T> && b == T(-1)) return T(U(0) - U(a));
    return T(a / b);
  });
  same("rem." + t + " %d, %a, %b;", [](T a, T b, T) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == T(-1)) return T(0);
    return T(a % b);
  });
  same("min." + t + " %d, %a, %b;", [](T a, T b, T) { return std::min(a, b); });
  same("max." + t + " %d, %a, %b;", [](T a, T b, T) { return std::max(a, b); });
  same("sad." + t + " %d, %a, %b, %c;", [](T a, T b, T c) { return T(U(a > b ? U(a) - U(b) : U(b) - U(a)) + U(c)); });
  const std::string setp = "setp.lt." + t + " %p, %a, %b;\nselp.b" + std::to_string(kBits) + " %d, %a, %b, %p;";
  same(setp, [](T a, T b, T) { return a < b ? a : b; });
  const std::string shift = "cvt.u32." + std::string(kBits == 16 ? "u16" : kBits == 32 ? "u32" : "u64") + " %x, %b;\n";
  same(shift + "shr." + t + " %d, %a, %x;", [](T a, T b, T) {
    const auto n = static_cast<std::uint32_t>(U(b));
    return n >= kBits ? (a < 0 ? T(-1) : T(0)) : T(a >> n);
  });
  same(shift + "shl.b" + std::to_string(kBits) + " %d, %a, %x;", [](T a, T b, T) {
    const auto n = static_cast<std::uint32_t>(U(b));
    return n >= kBits ? T(0) : T(std::uint64_t(a) << n);
  });
}

TEST(Integer, U16) {
  check_type<std::uint16_t>("u16");
}
TEST(Integer, S16) {
  check_type<std::int16_t>("s16");
}
TEST(Integer, U32) {
  check_type<std::uint32_t>("u32");
}
TEST(Integer, S32) {
  check_type<std::int32_t>("s32");
}
TEST(Integer, U64) {
  check_type<std::uint64_t>("u64");
}
TEST(Integer, S64) {
  check_type<std::int64_t>("s64");
}

TEST(Integer, Wide) {
  check<std::int64_t, std::int32_t>("s32", "s64", "mul.wide.s32 %d, %a, %b;",
                                    [](auto a, auto b, auto) { return std::int64_t{a} * b; });
  check<std::uint64_t, std::uint32_t>("u32", "u64", "mul.wide.u32 %d, %a, %b;",
                                      [](auto a, auto b, auto) { return std::uint64_t{a} * b; });
  check<std::int64_t, std::int32_t>("s32", "s64", "cvt.s64.s32 %w, %c;\nmad.wide.s32 %d, %a, %b, %w;",
                                    [](auto a, auto b, auto c) {
                                      return static_cast<std::int64_t>(static_cast<std::uint64_t>(std::int64_t{a} * b) +
                                                                       static_cast<std::uint64_t>(std::int64_t{c}));
                                    });
  check<std::int32_t, std::int16_t>("s16", "s32", "mul.wide.s16 %d, %a, %b;",
                                    [](auto a, auto b, auto) { return a * b; });
}

TEST(Integer, CarryChains) {
  // A 64-bit sum and difference, and a 64 x 64 multiply-add, from 32-bit pieces.
  const std::string split = "mov.b64 {%x, %y}, %a;\nmov.b64 {%z, %n}, %b;\n";
  check<std::uint64_t, std::uint64_t>("u64", "u64",
                                      split + "add.cc.u32 %x, %x, %z;\naddc.u32 %y, %y, %n;\nmov.b64 %d, {%x, %y};",
                                      [](auto a, auto b, auto) { return a + b; });
  check<std::uint64_t, std::uint64_t>("u64", "u64",
                                      split + "sub.cc.u32 %x, %x, %z;\nsubc.u32 %y, %y, %n;\nmov.b64 %d, {%x, %y};",
                                      [](auto a, auto b, auto) { return a - b; });
  check<std::uint64_t, std::uint64_t>(
      "u64", "u64",
      split +
          ".reg .b32 %lo, %hi, %c0, %c1;\nmov.b64 {%c0, %c1}, %c;\nmad.lo.cc.u32 %lo, %x, %z, %c0;\nmadc.hi.u32 %hi, "
          "%x, %z, %c1;\n"
          "mad.lo.u32 %hi, %x, %n, %hi;\nmad.lo.u32 %hi, %y, %z, %hi;\nmov.b64 %d, {%lo, %hi};",
      [](auto a, auto b, auto c) { return a * b + c; });
  // The carry out of a sum with a carry in.
  check<std::uint32_t, std::uint32_t>(
      "u32", "u32", "add.cc.u32 %x, %a, %b;\naddc.cc.u32 %y, %b, %c;\naddc.u32 %d, 0, 0;", [](auto a, auto b, auto c) {
        const std::uint64_t carry = (std::uint64_t{a} + b) >> 32;
        return static_cast<std::uint32_t>((std::uint64_t{b} + c + carry) >> 32);
      });
  check<std::uint32_t, std::uint32_t>(
      "u32", "u32", "sub.cc.u32 %x, %a, %b;\nsubc.cc.u32 %y, %b, %c;\nsubc.u32 %d, 0, 0;", [](auto a, auto b, auto c) {
        const std::int64_t borrow = a < b;
        return static_cast<std::uint32_t>(std::int64_t{b} - c - borrow < 0 ? -1 : 0);
      });
}

TEST(Integer, AbsNegSaturate) {
  check<std::int32_t, std::int32_t>("s32", "s32", "abs.s32 %d, %a;", [](auto a, auto, auto) {
    return static_cast<std::int32_t>(std::abs(std::int64_t{a}));
  });
  check<std::int32_t, std::int32_t>("s32", "s32", "neg.s32 %d, %a;",
                                    [](auto a, auto, auto) { return static_cast<std::int32_t>(-std::int64_t{a}); });
  const auto clamp = [](std::int64_t v) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(v, INT32_MIN, INT32_MAX));
  };
  check<std::int32_t, std::int32_t>("s32", "s32", "add.sat.s32 %d, %a, %b;",
                                    [=](auto a, auto b, auto) { return clamp(std::int64_t{a} + b); });
  check<std::int32_t, std::int32_t>("s32", "s32", "sub.sat.s32 %d, %a, %b;",
                                    [=](auto a, auto b, auto) { return clamp(std::int64_t{a} - b); });
  check<std::int32_t, std::int32_t>("s32", "s32", "mad24.lo.s32 %d, %a, %b, %c;", [](auto a, auto b, auto c) {
    const auto low = [](std::int64_t v) {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(v) << 40) >> 40;
    };
    return static_cast<std::int32_t>(low(a) * low(b) + c);
  });
}

TEST(Integer, Lop3AllTables) {
  for (unsigned table = 0; table < 256; table += 5)
    check<std::uint32_t, std::uint32_t>(
        "u32", "u32", "lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";", [table](auto a, auto b, auto c) {
          std::uint32_t r = 0;
          for (unsigned i = 0; i < 32; ++i)
            r |= ((table >> (((a >> i) & 1) * 4 + ((b >> i) & 1) * 2 + ((c >> i) & 1))) & 1u) << i;
          return r;
        });
}

TEST(Integer, ShiftsAndFields) {
  using U = std::uint32_t;
  const auto on32 = [](const std::string& body, std::function<U(U, U, U)> f) { check<U, U>("u32", "u32", body, f); };
  on32("shf.l.wrap.b32 %d, %a, %b, %c;",
       [](U a, U b, U c) { return c % 32 == 0 ? b : b << c % 32 | a >> (32 - c % 32); });
  on32("shf.r.clamp.b32 %d, %a, %b, %c;", [](U a, U b, U c) {
    return c == 0 ? a : c >= 32 ? b : a >> c | b << (32 - c);
  });
  on32("shf.r.wrap.b32 %d, %a, %b, %c;",
       [](U a, U b, U c) { return c % 32 == 0 ? a : a >> c % 32 | b << (32 - c % 32); });
  on32("prmt.b32 %d, %a, %b, %c;", [](U a, U b, U c) {
    const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
    U r = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned n = (c >> (4 * i)) & 15;
      const auto byte = static_cast<std::uint8_t>(bytes >> (8 * (n & 7)));
      r |= U{n & 8 ? static_cast<std::uint8_t>(static_cast<std::int8_t>(byte) < 0 ? 255 : 0) : byte} << (8 * i);
    }
    return r;
  });
  on32("prmt.b32.f4e %d, %a, %b, %c;",
       [](U a, U b, U c) { return static_cast<U>((std::uint64_t{b} << 32 | a) >> (8 * (c & 3))); });
  on32("bfe.u32 %d, %a, %b, %c;", [](U a, U b, U c) {
    const unsigned pos = b & 255, len = c & 255;
    U r = 0;
    for (unsigned i = 0; i < len && i < 32; ++i) r |= (pos + i < 32 ? (a >> (pos + i)) & 1 : 0) << i;
    return r;
  });
  on32("bfe.s32 %d, %a, %b, %c;", [](U a, U b, U c) {
    const unsigned pos = b & 255, len = c & 255;
    const U sign = len == 0 ? 0 : (a >> std::min(pos + len - 1, 31u)) & 1;
    U r = 0;
    for (unsigned i = 0; i < 32; ++i) r |= (i < len && pos + i <= 31 ? (a >> (pos + i)) & 1 : sign) << i;
    return r;
  });
  on32("bfi.b32 %d, %a, %b, %c, 5;", [](U a, U b, U c) {
    const unsigned pos = c & 255;
    U r = b;
    for (unsigned i = 0; i < 5 && pos + i < 32; ++i) r = (r & ~(1u << (pos + i))) | ((a >> i) & 1) << (pos + i);
    return r;
  });
  on32("brev.b32 %d, %a;", [](U a, U, U) {
    U r = 0;
    for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
    return r;
  });
  on32("popc.b32 %d, %a;", [](U a, U, U) { return static_cast<U>(__builtin_popcount(a)); });
  on32("clz.b32 %d, %a;", [](U a, U, U) { return a == 0 ? 32 : static_cast<U>(__builtin_clz(a)); });
  on32("bfind.u32 %d, %a;", [](U a, U, U) { return a == 0 ? ~0u : 31 - static_cast<U>(__builtin_clz(a)); });
  on32("bfind.s32 %d, %a;", [](U a, U, U) {
    const U v = static_cast<std::int32_t>(a) < 0 ? ~a : a;
    return v == 0 ? ~0u : 31 - static_cast<U>(__builtin_clz(v));
  });
  on32("cnot.b32 %d, %a;", [](U a, U, U) { return U{a == 0}; });
  on32("not.b32 %d, %a;", [](U a, U, U) { return ~a; });
  on32("fns.b32 %d, %a, 3, 2;", [](U a, U, U) {
    int seen = 0;
    for (unsigned i = 3; i < 32; ++i)
      if ((a >> i & 1) && ++seen == 2) return i;
    return ~0u;
  });
  on32("bmsk.clamp.b32 %d, %a, %b;", [](U a, U b, U) {
    U r = 0;
    for (std::uint64_t i = a; i < std::uint64_t{a} + b && i < 32; ++i) r |= 1u << i;
    return r;
  });
  on32("dp4a.u32.s32 %d, %a, %b, %c;", [](U a, U b, U c) {
    for (int i = 0; i < 4; ++i)
      c += static_cast<U>(static_cast<std::uint8_t>(a >> 8 * i) * static_cast<std::int8_t>(b >> 8 * i));
    return c;
  });
  on32("dp2a.hi.s32.u32 %d, %a, %b, %c;", [](U a, U b, U c) {
    for (int i = 0; i < 2; ++i)
      c += static_cast<U>(static_cast<std::int16_t>(a >> 16 * i) * static_cast<std::uint8_t>(b >> (16 + 8 * i)));
    return c;
  });
  check<std::uint64_t, std::uint64_t>("u64", "u64", "brev.b64 %d, %a;", [](auto a, auto, auto) {
    std::uint64_t r = 0;
    for (int i = 0; i < 64; ++i) r |= (a >> i & 1) << (63 - i);
    return r;
  });
  check<U, std::uint64_t>("u64", "u32", "popc.b64 %d, %a;",
                          [](auto a, auto, auto) { return static_cast<U>(__builtin_popcountll(a)); });
  check<U, std::uint64_t>("u64", "u32", "clz.b64 %d, %a;",
                          [](auto a, auto, auto) { return a == 0 ? 64u : static_cast<U>(__builtin_clzll(a)); });
}

TEST(Integer, SetpCombinesAndPairs) {
  using U = std::uint32_t;
  check<U, U>("u32", "u32",
              "setp.lt.u32 %p, %b, %c;\nsetp.ge.and.s32 %p|%q, %a, %b, %p;\nselp.u32 %x, 1, 0, %p;\nselp.u32 %y, 2, 0, "
              "%q;\nor.b32 %d, %x, %y;",
              [](U a, U b, U c) {
                const bool with = b < c, ge = static_cast<std::int32_t>(a) >= static_cast<std::int32_t>(b);
                return U{ge && with} | U{!ge && with} << 1;
              });
  check<U, U>("u32", "u32", "setp.hi.xor.u32 %p, %a, %b, 1;\nselp.u32 %d, 1, 0, %p;",
              [](U a, U b, U) { return U{!(a > b)}; });
  check<U, U>("u32", "u32", "set.ls.u32.u32 %d, %a, %b;", [](U a, U b, U) { return a <= b ? ~0u : 0u; });
  check<U, U>("u32", "u32", "slct.u32.s32 %d, %a, %b, %c;",
              [](U a, U b, U c) { return static_cast<std::int32_t>(c) >= 0 ? a : b; });
  check<U, U>(
      "u32", "u32",
      "setp.eq.u32 %p, %a, %b;\nnot.pred %q, %p;\nxor.pred %p, %p, %q;\nand.pred %p, %p, %q;\nselp.u32 %d, 1, 0, %p;",
      [](U a, U b, U) { return U{a != b}; });
}

TEST(Integer, PacksAndNarrows) {
  using U = std::uint32_t;
  check<U, U>("u32", "u32", "mov.b32 {%h, %g}, %a;\nmov.b32 %d, {%g, %h};",
              [](U a, U, U) { return a >> 16 | a << 16; });
  check<std::uint64_t, U>("u32", "u64", "mov.b64 %d, {%b, %a};",
                          [](U a, U b, U) { return std::uint64_t{a} << 32 | b; });
  check<U, std::uint64_t>("u64", "u32", "mov.b64 {_, %d}, %a;",
                          [](std::uint64_t a, auto, auto) { return static_cast<U>(a >> 32); });
  check<std::int64_t, std::uint64_t>("u64", "s64", "cvt.s8.u64 %d, %a;", [](std::uint64_t a, auto, auto) {
    return std::int64_t{static_cast<std::int8_t>(a)};
  });
  check<U, std::uint64_t>("u64", "u32", "cvt.u32.u16 %d, %a;",
                          [](std::uint64_t a, auto, auto) { return U{static_cast<std::uint16_t>(a)}; });
  check<std::int32_t, std::int64_t>("s64", "s32", "cvt.sat.s32.s64 %d, %a;", [](std::int64_t a, auto, auto) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(a, INT32_MIN, INT32_MAX));
  });
  check<U, std::int32_t>("s32", "u32", "cvt.sat.u8.s32 %d, %a;",
                         [](std::int32_t a, auto, auto) { return static_cast<U>(std::clamp(a, 0, 255)); });
}

}  // namespace
}  // namespace gpuctl::softgpu::engine::integer_test
