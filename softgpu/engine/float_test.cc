// Compares floating-point instructions with the same operations computed here. Directed rounding is checked by its
// defining property, with exact arithmetic in long double where that suffices, else with the rounding mode of the CPU.
#include <cfenv>
#include <cmath>
#include <functional>
#include <random>

#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine::float_test {
namespace {

using testing::run_elementwise;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <class T>
std::vector<T> samples(unsigned seed) {
  using B = BitsOf<T>;
  std::mt19937_64 random(seed);
  const T infinity = std::numeric_limits<T>::infinity(), least = std::numeric_limits<T>::denorm_min();
  const T edges[] = {0,
                     -T(0),
                     1,
                     -1,
                     T(0.5),
                     T(1.5),
                     T(2.5),
                     infinity,
                     -infinity,
                     std::numeric_limits<T>::quiet_NaN(),
                     least,
                     -least,
                     least * 1000,
                     std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max(),
                     -std::numeric_limits<T>::max(),
                     T(1) + std::numeric_limits<T>::epsilon()};
  std::vector<T> values;
  for (int i = 0; i < 1280; ++i) {
    switch (random() % 3) {
      case 0:
        values.push_back(edges[random() % std::size(edges)]);
        break;
      case 1:
        values.push_back(__builtin_bit_cast(T, static_cast<B>(random())));
        break;
      default:
        values.push_back(static_cast<T>(static_cast<double>(static_cast<std::int64_t>(random())) * 1e-18));
        break;
    }
  }
  return values;
}

float flush(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}
float canonical(float x) {
  return std::isnan(x) ? __builtin_bit_cast(float, 0x7fffffffu) : x;
}
double canonical(double x) {
  return x;
}
float saturate(float x) {
  return std::isnan(x) ? 0 : x <= 0 ? 0 : x >= 1 ? 1 : x;
}

template <class T>
void check(const std::string& body, std::function<T(T, T, T)> expected) {
  const std::string type = sizeof(T) == 8 ? "f64" : "f32";
  const auto a = samples<T>(1), b = samples<T>(2), c = samples<T>(3);
  const auto out = run_elementwise<T>(type, type, body, a, b, c);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const T want = canonical(expected(a[i], b[i], c[i]));
    if (sizeof(T) == 8 && std::isnan(want) && std::isnan(out[i])) continue;  // the payload is the hardware's
    ASSERT_EQ(__builtin_bit_cast(BitsOf<T>, want), __builtin_bit_cast(BitsOf<T>, out[i]))
        << body << " of " << a[i] << ", " << b[i] << ", " << c[i] << ": " << want << ", not " << out[i];
  }
}

TEST(Float, Arithmetic32) {
  check<float>("add.f32 %d, %a, %b;", [](float a, float b, float) { return a + b; });
  check<float>("sub.rn.f32 %d, %a, %b;", [](float a, float b, float) { return a - b; });
  check<float>("mul.f32 %d, %a, %b;", [](float a, float b, float) { return a * b; });
  check<float>("div.rn.f32 %d, %a, %b;", [](float a, float b, float) { return a / b; });
  check<float>("fma.rn.f32 %d, %a, %b, %c;", [](float a, float b, float c) { return std::fma(a, b, c); });
  check<float>("mad.rn.f32 %d, %a, %b, %c;", [](float a, float b, float c) { return std::fma(a, b, c); });
  check<float>("sqrt.rn.f32 %d, %a;", [](float a, float, float) { return std::sqrt(a); });
  check<float>("rcp.rn.f32 %d, %a;", [](float a, float, float) { return 1 / a; });
}

TEST(Float, FlushAndSaturate) {
  check<float>("add.ftz.f32 %d, %a, %b;", [](float a, float b, float) { return flush(flush(a) + flush(b)); });
  check<float>("mul.ftz.f32 %d, %a, %b;", [](float a, float b, float) { return flush(flush(a) * flush(b)); });
  check<float>("fma.rn.ftz.sat.f32 %d, %a, %b, %c;",
               [](float a, float b, float c) { return saturate(flush(std::fma(flush(a), flush(b), flush(c)))); });
  check<float>("add.sat.f32 %d, %a, %b;", [](float a, float b, float) { return saturate(a + b); });
}

TEST(Float, Arithmetic64) {
  check<double>("add.f64 %d, %a, %b;", [](double a, double b, double) { return a + b; });
  check<double>("mul.rn.f64 %d, %a, %b;", [](double a, double b, double) { return a * b; });
  check<double>("div.rn.f64 %d, %a, %b;", [](double a, double b, double) { return a / b; });
  check<double>("fma.rn.f64 %d, %a, %b, %c;", [](double a, double b, double c) { return std::fma(a, b, c); });
  check<double>("sqrt.rn.f64 %d, %a;", [](double a, double, double) { return std::sqrt(a); });
}

template <class T>
T in_mode(int mode, const std::function<T()>& f) {
  std::fesetround(mode);
  const T r = f();
  std::fesetround(FE_TONEAREST);
  return r;
}

template <class T>
void check_directed(const std::string& type) {
  const std::pair<const char*, int> modes[] = {{"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const auto& [name, mode] : modes) {
    const int m = mode;
    const std::string suffix = std::string(".") + name + "." + type + " %d, %a, %b";
    check<T>("add" + suffix + ";", [m](T a, T b, T) {
      volatile T x = a, y = b;
      return in_mode<T>(m, [&] { return x + y; });
    });
    check<T>("mul" + suffix + ";", [m](T a, T b, T) {
      volatile T x = a, y = b;
      return in_mode<T>(m, [&] { return x * y; });
    });
    check<T>("div" + suffix + ";", [m](T a, T b, T) {
      volatile T x = a, y = b;
      return in_mode<T>(m, [&] { return x / y; });
    });
    check<T>("fma" + suffix + ", %c;", [m](T a, T b, T c) {
      volatile T x = a, y = b, z = c;
      return in_mode<T>(m, [&] { return std::fma(T(x), T(y), T(z)); });
    });
  }
}
TEST(Float, Directed32) {
  check_directed<float>("f32");
}
TEST(Float, Directed64) {
  check_directed<double>("f64");
}

TEST(Float, MinMaxSign) {
  const auto least = [](float a, float b) {
    return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
  };
  const auto greatest = [](float a, float b) {
    return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
  };
  check<float>("min.f32 %d, %a, %b;", [=](float a, float b, float) { return least(a, b); });
  check<float>("max.f32 %d, %a, %b;", [=](float a, float b, float) { return greatest(a, b); });
  check<float>("max.NaN.f32 %d, %a, %b;",
               [=](float a, float b, float) { return std::isnan(a) || std::isnan(b) ? NAN : greatest(a, b); });
  check<double>("min.f64 %d, %a, %b;", [](double a, double b, double) {
    return std::isnan(a) ? b : std::isnan(b) ? a : a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
  });
}

TEST(Float, SignOperationsTouchOnlyTheSign) {
  const auto a = samples<float>(5), b = samples<float>(6);
  const auto copied = run_elementwise<std::uint32_t>("f32", "u32", "copysign.f32 %d, %a, %b;", a, b, a);
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ((__builtin_bit_cast(std::uint32_t, a[i]) & 0x80000000u) |
                  (__builtin_bit_cast(std::uint32_t, b[i]) & 0x7fffffffu),
              copied[i]);
  const auto negated = run_elementwise<std::uint32_t>("f32", "u32", "neg.f32 %d, %a;", a, a, a);
  const auto absolute = run_elementwise<std::uint32_t>("f32", "u32", "abs.f32 %d, %a;", a, a, a);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(__builtin_bit_cast(std::uint32_t, a[i]) ^ 0x80000000u, negated[i]);
    EXPECT_EQ(__builtin_bit_cast(std::uint32_t, a[i]) & 0x7fffffffu, absolute[i]);
  }
}

TEST(Float, Comparisons) {
  const std::pair<const char*, std::function<bool(float, float)>> rows[] = {
      {"eq", [](float a, float b) { return a == b; }},
      {"ne", [](float a, float b) { return a < b || a > b; }},
      {"lt", [](float a, float b) { return a < b; }},
      {"ge", [](float a, float b) { return a >= b; }},
      {"equ", [](float a, float b) { return a == b || std::isunordered(a, b); }},
      {"neu", [](float a, float b) { return a != b; }},
      {"ltu", [](float a, float b) { return !(a >= b); }},
      {"geu", [](float a, float b) { return !(a < b); }},
      {"leu", [](float a, float b) { return !(a > b); }},
      {"gtu", [](float a, float b) { return !(a <= b); }},
      {"num", [](float a, float b) { return !std::isunordered(a, b); }},
      {"nan", [](float a, float b) { return std::isunordered(a, b); }}};
  const auto a = samples<float>(1), b = samples<float>(2);
  for (const auto& [name, f] : rows) {
    const auto out = run_elementwise<std::uint32_t>(
        "f32", "u32", std::string("setp.") + name + ".f32 %p, %a, %b;\nselp.u32 %d, 1, 0, %p;", a, b, b);
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(f(a[i], b[i]), out[i] != 0) << name << " " << a[i] << " " << b[i];
  }
  const auto same = run_elementwise<float>("f32", "f32", "set.le.ftz.f32.f32 %d, %a, %b;", a, b, b);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(flush(a[i]) <= flush(b[i]) ? 1.0f : 0.0f, same[i]);
}

TEST(Float, Testp) {
  const std::pair<const char*, std::function<bool(float)>> rows[] = {
      {"finite", [](float a) { return std::isfinite(a); }},
      {"infinite", [](float a) { return std::isinf(a); }},
      {"number", [](float a) { return !std::isnan(a); }},
      {"notanumber", [](float a) { return std::isnan(a); }},
      {"normal", [](float a) { return std::isnormal(a); }},
      {"subnormal", [](float a) { return std::fpclassify(a) == FP_SUBNORMAL; }}};
  const auto a = samples<float>(4);
  for (const auto& [name, f] : rows) {
    const auto out = run_elementwise<std::uint32_t>(
        "f32", "u32", std::string("testp.") + name + ".f32 %p, %a;\nselp.u32 %d, 1, 0, %p;", a, a, a);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(f(a[i]), out[i] != 0) << name << " " << a[i];
  }
}

TEST(Float, ApproximationsAreClose) {
  const std::pair<const char*, std::function<double(double)>> rows[] = {
      {"rcp.approx.ftz.f32", [](double a) { return 1 / a; }},
      {"sqrt.approx.f32", [](double a) { return std::sqrt(a); }},
      {"rsqrt.approx.f32", [](double a) { return 1 / std::sqrt(a); }},
      {"sin.approx.f32", [](double a) { return std::sin(a); }},
      {"cos.approx.f32", [](double a) { return std::cos(a); }},
      {"lg2.approx.f32", [](double a) { return std::log2(a); }},
      {"ex2.approx.ftz.f32", [](double a) { return std::exp2(a); }},
      {"tanh.approx.f32", [](double a) { return std::tanh(a); }}};
  std::vector<float> a(320);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = 0.01f + static_cast<float>(i) * 0.02f;
  for (const auto& [name, f] : rows) {
    const auto out = run_elementwise<float>("f32", "f32", std::string(name) + " %d, %a;", a, a, a);
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(f(a[i]), out[i], 1e-6 * std::abs(f(a[i])) + 1e-7) << name << " " << a[i];
  }
}

}  // namespace
}  // namespace gpuctl::softgpu::engine::float_test
