// Compares whole kernels compiled by nvcc with the same computed here, bit for bit.
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine {
namespace {

using testing::launch;
using testing::Shape;

std::shared_ptr<const Program> kernels() {
  static const std::shared_ptr<const Program> program = [] {
    std::ifstream file(KERNELS_PTX);
    std::stringstream text;
    text << file.rdbuf();
    return testing::compile(text.str());
  }();
  return program;
}

std::mt19937 random_numbers(1);
std::vector<float> random_floats(std::size_t n) {
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(static_cast<std::int32_t>(random_numbers())) * 1e-8f;
  return values;
}

TEST(Kernels, AllOfThemCompile) {
  ASSERT_NE(nullptr, kernels());
  EXPECT_EQ(8u, kernels()->kernel_names().size());
  for (const std::string& name : kernels()->kernel_names()) {
    const auto kernel = kernels()->kernel(name);
    EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
  }
}

TEST(Kernels, AddVectors) {
  const auto a = random_floats(10000), b = random_floats(10000);
  std::vector<float> c(10240, 5);
  Shape shape;
  shape.grid.x = 40;
  shape.block.x = 256;
  ASSERT_EQ("", launch(*kernels(), "add_vectors", shape, a.data(), b.data(), c.data(), 10000));
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(i < 10000 ? a[i] + b[i] : 5, c[i]);
}

TEST(Kernels, MultiplyMatrices) {
  const int n = 70;
  const auto a = random_floats(n * n), b = random_floats(n * n);
  std::vector<float> c(n * n);
  Shape shape;
  shape.grid = {5, 5, 1};
  shape.block = {16, 16, 1};
  ASSERT_EQ("", launch(*kernels(), "multiply_matrices", shape, a.data(), b.data(), c.data(), n));
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 0;
      for (int k = 0; k < n; ++k)
        sum = std::fma(a[static_cast<std::size_t>(row * n + k)], b[static_cast<std::size_t>(k * n + column)], sum);
      for (int k = n; k % 16 != 0; ++k) sum = std::fma(0.0f, 0.0f, sum);
      ASSERT_EQ(sum, c[static_cast<std::size_t>(row * n + column)]) << row << " " << column;
    }
}

TEST(Kernels, Reduce) {
  for (const int n : {1, 100, 5000, 12345}) {
    std::vector<int> in(static_cast<std::size_t>(n));
    int sum = 0, out = 0;
    for (int& v : in) sum += v = static_cast<int>(random_numbers() % 2001) - 1000;
    Shape shape;
    shape.block.x = 256;
    shape.grid.x = static_cast<std::uint32_t>((n + 255) / 256);
    shape.dynamic_shared = 1024;
    ASSERT_EQ("", launch(*kernels(), "reduce", shape, in.data(), &out, n));
    EXPECT_EQ(sum, out) << n;
  }
}

TEST(Kernels, Histogram) {
  std::vector<std::uint8_t> in(100000);
  std::vector<std::uint32_t> bins(256), want(256);
  for (auto& v : in) ++want[v = static_cast<std::uint8_t>(random_numbers() & random_numbers())];
  Shape shape;
  shape.block.x = 192;
  shape.grid.x = 7;
  ASSERT_EQ("", launch(*kernels(), "histogram", shape, in.data(), bins.data(), 100000));
  EXPECT_EQ(want, bins);
}

long long mixed(long long v) {
  int digits[20];
  int count = 0;
  unsigned long long u = v < 0 ? 0ull - static_cast<unsigned long long>(v) : static_cast<unsigned long long>(v);
  do {
    digits[count++] = static_cast<int>(u % 10);
    u /= 10;
  } while (u != 0);
  unsigned long long checksum = 0;
  for (int k = 0; k < count; ++k) checksum = checksum * 31 + static_cast<unsigned long long>(digits[(k * 7) % count]);
  const double d = static_cast<double>(v), root = std::sqrt(d * d / 3.0);
  unsigned long long reversed = 0;
  for (int i = 0; i < 64; ++i) reversed |= (static_cast<unsigned long long>(v) >> i & 1) << (63 - i);
  switch (count % 5) {
    case 0:
      checksum ^= __builtin_bit_cast(unsigned long long, root);
      break;
    case 1:
      checksum += static_cast<unsigned long long>(__builtin_popcountll(static_cast<unsigned long long>(v)));
      break;
    case 2:
      checksum -= reversed >> 40;
      break;
    case 3:
      checksum += static_cast<unsigned long long>(std::floor(root));
      break;
    default:
      checksum = ~checksum;
      break;
  }
  return static_cast<long long>(checksum);
}

TEST(Kernels, Mixture) {
  std::mt19937_64 random(2);
  std::vector<long long> in(3000), out(3000);
  for (auto& v : in) v = static_cast<long long>(random()) >> (random() % 64);
  Shape shape;
  shape.block.x = 128;
  shape.grid.x = 24;
  ASSERT_EQ("", launch(*kernels(), "mixture", shape, in.data(), out.data(), 3000));
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(mixed(in[i]), out[i]) << in[i];
}

TEST(Kernels, Functions) {
  std::vector<float> in(2000), single(2000);
  std::vector<double> wide(2000);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = (static_cast<float>(i) - 1000) * 0.01f;
  Shape shape;
  shape.block.x = 256;
  shape.grid.x = 8;
  ASSERT_EQ("", launch(*kernels(), "functions", shape, in.data(), single.data(), wide.data(), 2000));
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double x = in[i];
    const double s =
        std::sin(x) + std::exp(-x * x) * std::log(1 + std::abs(x)) + std::pow(std::abs(x), 0.7) + std::erf(x);
    const double w = std::sin(x) + std::exp(-x) + std::cbrt(x) + std::atan2(x, 2.0);
    ASSERT_NEAR(s, single[i], 2e-6 * (1 + std::abs(s))) << x;
    ASSERT_NEAR(w, wide[i], 1e-14 * (1 + std::abs(w))) << x;
  }
}

TEST(Kernels, Halves) {
  // Small integers and quarters: exact in half precision, so the expected values are plain arithmetic.
  const auto half_bits = [](double v) {
    const auto f = static_cast<float>(v);
    const std::uint32_t b = __builtin_bit_cast(std::uint32_t, f);
    if ((b & 0x7fffffff) == 0) return b >> 16;
    return (b >> 16 & 0x8000) | (((b >> 23 & 255) - 112) << 10 | (b >> 13 & 0x3ff));
  };
  std::vector<std::uint32_t> a(512), b(512), out(512);
  std::vector<double> av(1024), bv(1024);
  for (std::size_t i = 0; i < 1024; ++i) {
    av[i] = (static_cast<double>(random_numbers() % 65) - 32) / 4;
    bv[i] = (static_cast<double>(random_numbers() % 65) - 32) / 4;
  }
  for (std::size_t i = 0; i < 512; ++i) {
    a[i] = half_bits(av[2 * i]) | half_bits(av[2 * i + 1]) << 16;
    b[i] = half_bits(bv[2 * i]) | half_bits(bv[2 * i + 1]) << 16;
  }
  Shape shape;
  shape.block.x = 64;
  shape.grid.x = 8;
  ASSERT_EQ("", launch(*kernels(), "halves", shape, a.data(), b.data(), out.data(), 512));
  for (std::size_t i = 0; i < 512; ++i) {
    double x[2];
    for (std::size_t k = 0; k < 2; ++k) {
      const double p = av[2 * i + k], q = bv[2 * i + k];
      x[k] = std::max(p * q + (p + q), -p) + 0.0;
    }
    const bool straight = av[2 * i] < bv[2 * i + 1];
    const std::uint32_t low = half_bits(straight ? x[0] : x[1]), high = half_bits(straight ? x[1] : x[0]);
    const auto same = [](std::uint32_t p, std::uint32_t q) { return p == q || ((p | q) & 0x7fff) == 0; };
    ASSERT_TRUE(same(low, out[i] & 0xffff) && same(high, out[i] >> 16))
        << i << std::hex << " " << low << " " << high << " " << out[i];
  }
}

TEST(Kernels, UseGlobals) {
  const Symbol* total = kernels()->symbol("total");
  ASSERT_NE(nullptr, total);
  std::vector<int> in(1000);
  long long want = 0;
  const int weights[] = {1, 10, 100, 1000};
  for (std::size_t i = 0; i < in.size(); ++i)
    want += static_cast<long long>(in[i] = static_cast<int>(random_numbers())) * weights[i & 3];
  Shape shape;
  shape.block.x = 96;
  ASSERT_EQ("", launch(*kernels(), "use_globals", shape, in.data(), 1000));
  EXPECT_EQ(want, *reinterpret_cast<const long long*>(total->address));
}

}  // namespace
}  // namespace gpuctl::softgpu::engine
