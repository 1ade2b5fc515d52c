// Tests of cvt and half precision. Expected values of roundings come from the definition: a search over all values of
// the target format finds the two neighbours (f16, bf16), or the CPU gives them (f32).
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine {
namespace {

using testing::run_elementwise;

double half_value(std::uint16_t h) {
  const int exponent = (h >> 10) & 31, fraction = h & 1023;
  const double magnitude = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}
double bfloat_value(std::uint16_t b) {
  return __builtin_bit_cast(float, std::uint32_t{b} << 16);
}

/// The values of a 16-bit format in rising order, infinities as the next power of two beyond the largest.
struct Format {
  std::vector<std::pair<double, std::uint16_t>> values;
  double overflow;
  explicit Format(double (*value)(std::uint16_t), double beyond) : overflow(beyond) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
      const double v = value(static_cast<std::uint16_t>(bits));
      if (std::isnan(v) || bits == 0x8000) continue;
      values.emplace_back(std::isinf(v) ? std::copysign(beyond, v) : v, static_cast<std::uint16_t>(bits));
    }
    std::sort(values.begin(), values.end());
  }
  std::uint16_t round(double x, char mode) const {
    if (std::isnan(x)) return 0x7fff;
    if (x == 0) return std::signbit(x) ? 0x8000 : 0;
    if (std::isinf(x)) return x > 0 ? values.back().second : values.front().second;
    // Beyond the largest number, only rounding outwards or to nearest gives infinity.
    if (std::abs(x) >= overflow) {
      const bool infinite = mode == 'n' || (mode == 'p' && x > 0) || (mode == 'm' && x < 0);
      return x > 0 ? (values.end() - (infinite ? 1 : 2))->second : (values.begin() + (infinite ? 0 : 1))->second;
    }
    auto above = std::lower_bound(values.begin(), values.end(), std::make_pair(x, std::uint16_t{0}));
    if (above->first == x) return above->second;
    const auto below = above - 1;
    const double low = x - below->first, high = above->first - x;
    const bool even_below = (below->second & 1) == 0;
    bool up = mode == 'p' || (mode == 'z' && x < 0);
    if (mode == 'n') up = high < low || (high == low && !even_below);
    std::uint16_t bits = up ? above->second : below->second;
    if (bits == 0 && x < 0) bits = 0x8000;
    return bits;
  }
};
const Format& half() {
  static const Format format(half_value, 65536.0);
  return format;
}
const Format& bfloat() {
  static const Format format(bfloat_value, std::ldexp(1.0, 128));
  return format;
}

std::vector<float> floats(unsigned seed, bool moderate) {
  std::mt19937 random(seed);
  std::vector<float> values = {
      0,      -0.0f,    1,         -1,  65504,         65519,         65520,    -65520, 65536,         1e30f,
      -1e30f, INFINITY, -INFINITY, NAN, 5.9604645e-8f, 2.9802322e-8f, 2.98e-8f, 1e-40f, 3.3895314e38f, 3.4e38f,
      0.1f,   -0.3f};
  while (values.size() < 1280) {
    const float wild = __builtin_bit_cast(float, static_cast<std::uint32_t>(random()));
    values.push_back(moderate ? std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())),
                                           static_cast<int>(random() % 50) - 56)
                              : wild);
  }
  return values;
}

TEST(Convert, FloatToHalfInEveryMode) {
  for (const bool moderate : {false, true}) {
    const auto a = floats(7, moderate);
    for (const std::string mode : {"rn", "rz"}) {
      const auto f16 = run_elementwise<std::uint16_t>("f32", "u16", "cvt." + mode + ".f16.f32 %d, %a;", a, a, a);
      const auto bf16 = run_elementwise<std::uint16_t>("f32", "u16", "cvt." + mode + ".bf16.f32 %d, %a;", a, a, a);
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(half().round(a[i], mode[1]), f16[i]) << mode << " " << a[i];
        ASSERT_EQ(bfloat().round(a[i], mode[1]), bf16[i]) << mode << " " << a[i];
      }
    }
    for (const std::string mode : {"rm", "rp"}) {
      const auto f16 = run_elementwise<std::uint16_t>("f32", "u16", "cvt." + mode + ".f16.f32 %d, %a;", a, a, a);
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(half().round(a[i], mode[1]), f16[i]) << mode << " " << a[i];
    }
    const auto pair =
        run_elementwise<std::uint32_t>("f32", "u32", "cvt.rn.f16x2.f32 %d, %a, %b;", a, floats(9, moderate), a);
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(std::uint32_t{half().round(a[i], 'n')} << 16 | half().round(floats(9, moderate)[i], 'n'), pair[i]);
  }
}

TEST(Convert, HalfToFloatAll) {
  std::vector<std::uint16_t> all(65536);
  for (unsigned i = 0; i < 65536; ++i) all[i] = static_cast<std::uint16_t>(i);
  const auto out = run_elementwise<float>("u16", "f32", "cvt.f32.f16 %d, %a;", all, all, all);
  for (unsigned i = 0; i < 65536; ++i) {
    const double want = half_value(all[i]);
    if (std::isnan(want))
      ASSERT_EQ(0x7fffffffu, __builtin_bit_cast(std::uint32_t, out[i]));
    else
      ASSERT_EQ(__builtin_bit_cast(std::uint32_t, static_cast<float>(want)), __builtin_bit_cast(std::uint32_t, out[i]))
          << i;
  }
}

TEST(Convert, HalfArithmeticIsCorrectlyRounded) {
  std::mt19937 random(3);
  std::vector<std::uint16_t> a(6400), b(6400), c(6400);
  for (auto* v : {&a, &b, &c})
    for (auto& h : *v) h = static_cast<std::uint16_t>(random());
  // Exact in long double for all but sums of very different sizes, where the sticky part is still right.
  const std::tuple<const char*, std::function<long double(double, double, double)>> rows[] = {
      {"add", [](double x, double y, double) { return static_cast<long double>(x) + y; }},
      {"sub", [](double x, double y, double) { return static_cast<long double>(x) - y; }},
      {"mul", [](double x, double y, double) { return static_cast<long double>(x) * y; }},
  };
  for (const auto& [name, f] : rows) {
    const auto out = run_elementwise<std::uint16_t>("u16", "u16", std::string(name) + ".rn.f16 %d, %a, %b;", a, b, c);
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(half().round(static_cast<double>(f(half_value(a[i]), half_value(b[i]), 0)), 'n'), out[i])
          << name << " " << a[i] << " " << b[i];
  }
  // f16 products are multiples of 2^-48 below 2^32, and so is c: 80 bits do not fit, but the sum of a product and c of
  // comparable size does; __float128 holds all of them.
  const auto fma = run_elementwise<std::uint16_t>("u16", "u16", "fma.rn.f16 %d, %a, %b, %c;", a, b, c);
  for (std::size_t i = 0; i < a.size(); ++i) {
    __extension__ const __float128 exact =
        static_cast<__float128>(half_value(a[i])) * half_value(b[i]) + half_value(c[i]);
    double nearest = static_cast<double>(exact);
    // Round to odd, so that the second rounding sees the bits that the first one lost.
    if (std::isfinite(nearest) && exact != nearest) {
      const bool even = (__builtin_bit_cast(std::uint64_t, nearest) & 1) == 0;
      if (even) nearest = std::nextafter(nearest, exact > nearest ? INFINITY : -INFINITY);
    }
    ASSERT_EQ(half().round(nearest, 'n'), fma[i]) << a[i] << " " << b[i] << " " << c[i];
  }
  std::vector<std::uint32_t> pa(3200), pb(3200);
  for (auto& v : pa) v = static_cast<std::uint32_t>(random());
  for (auto& v : pb) v = static_cast<std::uint32_t>(random());
  const auto pairs = run_elementwise<std::uint32_t>("f16x2", "f16x2", "add.f16x2 %d, %a, %b;", pa, pb, pa);
  for (std::size_t i = 0; i < pa.size(); ++i) {
    const auto one = [](std::uint32_t x, std::uint32_t y) {
      return std::uint32_t{
          half().round(half_value(static_cast<std::uint16_t>(x)) + half_value(static_cast<std::uint16_t>(y)), 'n')};
    };
    ASSERT_EQ(one(pa[i], pb[i]) | one(pa[i] >> 16, pb[i] >> 16) << 16, pairs[i]);
  }
}

template <class D>
void check_to_integer(const std::string& type, D at_nan) {
  const auto a = floats(11, false), b = floats(12, true);
  const std::pair<const char*, double (*)(double)> modes[] = {
      {"rni", std::nearbyint}, {"rzi", std::trunc}, {"rmi", std::floor}, {"rpi", std::ceil}};
  for (const auto& values : {a, b})
    for (const auto& [mode, f] : modes) {
      const auto out = run_elementwise<D>("f32", type, std::string("cvt.") + mode + "." + type + ".f32 %d, %a;", values,
                                          values, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double r = f(values[i]);
        const long double lowest = std::numeric_limits<D>::min(), highest = std::numeric_limits<D>::max();
        const D want = std::isnan(r)  ? at_nan
                       : r <= lowest  ? std::numeric_limits<D>::min()
                       : r >= highest ? std::numeric_limits<D>::max()
                                      : static_cast<D>(r);
        ASSERT_EQ(want, out[i]) << mode << " " << type << " " << values[i];
      }
    }
}
TEST(Convert, FloatToInteger) {
  check_to_integer<std::int32_t>("s32", 0);
  check_to_integer<std::uint32_t>("u32", 0);
  check_to_integer<std::int64_t>("s64", std::numeric_limits<std::int64_t>::min());
  check_to_integer<std::uint64_t>("u64", std::uint64_t{1} << 63);
}

TEST(Convert, IntegerToFloatInEveryMode) {
  std::mt19937_64 random(5);
  std::vector<std::int64_t> a(640);
  for (auto& v : a) v = static_cast<std::int64_t>(random()) >> (random() % 64);
  a[0] = 0, a[1] = std::numeric_limits<std::int64_t>::min(), a[2] = std::numeric_limits<std::int64_t>::max();
  for (const char mode : {'n', 'z', 'm', 'p'}) {
    const auto out = run_elementwise<float>("s64", "f32", std::string("cvt.r") + mode + ".f32.s64 %d, %a;", a, a, a);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto exact = static_cast<long double>(a[i]);  // 64 bits of precision
      float want = static_cast<float>(exact);
      if (mode == 'm' && want > exact) want = std::nextafter(want, -INFINITY);
      if (mode == 'p' && want < exact) want = std::nextafter(want, INFINITY);
      if (mode == 'z' && std::abs(static_cast<long double>(want)) > std::abs(exact)) want = std::nextafter(want, 0.0f);
      ASSERT_EQ(want, out[i]) << mode << " " << a[i];
    }
  }
  const auto f64 = run_elementwise<double>("u64", "f64", "cvt.rn.f64.u64 %d, %a;", a, a, a);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(static_cast<double>(static_cast<std::uint64_t>(a[i])), f64[i]);
}

TEST(Convert, BetweenFloats) {
  std::mt19937_64 random(6);
  std::vector<double> a(1280);
  for (auto& v : a)
    v = random() % 4 == 0 ? __builtin_bit_cast(double, random())
                          : std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())),
                                       static_cast<int>(random() % 260) - 200);
  a[0] = NAN, a[1] = INFINITY, a[2] = -0.0, a[3] = 1e-45, a[4] = 0x1.fffffffp127;
  for (const char mode : {'n', 'z', 'm', 'p'}) {
    const auto out = run_elementwise<float>("f64", "f32", std::string("cvt.r") + mode + ".f32.f64 %d, %a;", a, a, a);
    for (std::size_t i = 0; i < a.size(); ++i) {
      float want = static_cast<float>(a[i]);
      if (mode == 'm' && want > a[i]) want = std::nextafter(want, -INFINITY);
      if (mode == 'p' && want < a[i]) want = std::nextafter(want, INFINITY);
      if (mode == 'z' && std::abs(double{want}) > std::abs(a[i])) want = std::nextafter(want, 0.0f);
      if (std::isnan(a[i]))
        ASSERT_EQ(0x7fffffffu, __builtin_bit_cast(std::uint32_t, out[i]));
      else
        ASSERT_EQ(__builtin_bit_cast(std::uint32_t, want), __builtin_bit_cast(std::uint32_t, out[i]))
            << mode << " " << a[i];
    }
  }
  const auto f = floats(13, true);
  const auto integral = run_elementwise<float>("f32", "f32", "cvt.rmi.f32.f32 %d, %a;", f, f, f);
  const auto saturated = run_elementwise<float>("f32", "f32", "cvt.sat.f32.f32 %d, %a;", f, f, f);
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (std::isnan(f[i])) continue;
    ASSERT_EQ(std::floor(f[i]), integral[i]);
    ASSERT_EQ(std::clamp(f[i], 0.0f, 1.0f), saturated[i]);
  }
}

}  // namespace
}  // namespace gpuctl::softgpu::engine
