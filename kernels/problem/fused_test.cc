#include "kernels/problem/fused.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "kernels/problem/random.h"

namespace gpuctl::bench {
namespace {

// (1 + e)(1 - e) - 1 = -e*e exactly; a product rounded on its own gives 0.
TEST(Fused, RoundsOnce) {
  constexpr float kE = 0x1p-13f;
  std::array<float, 9> sum;
  std::array<float, 9> x;
  std::array<float, 9> values;
  std::array<float, 9> addends;
  sum.fill(-1.0f);
  addends.fill(-1.0f);
  values.fill(1.0f - kE);
  x.fill(1.0f - kE);
  add_scaled(sum.data(), 1.0f + kE, values.data(), sum.size());
  scale_and_add(x.data(), 1.0f + kE, addends.data(), x.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    EXPECT_EQ(sum[i], -kE * kE);
    EXPECT_EQ(x[i], -kE * kE);
  }
}

TEST(Fused, AgreesWithTheCLibrary) {
  Random random(7);
  std::vector<float> x(1003);
  std::vector<float> addends(x.size());
  for (float& value : x) value = random.uniform_float() - 0.5f;
  for (float& value : addends) value = random.uniform_float() - 0.5f;
  std::vector<float> scaled = x;
  std::vector<float> sum = addends;
  scale_and_add(scaled.data(), 0.7f, addends.data(), scaled.size());
  add_scaled(sum.data(), 0.7f, x.data(), sum.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(scaled[i], std::fma(x[i], 0.7f, addends[i]));
    ASSERT_EQ(sum[i], scaled[i]);
  }
}

}  // namespace
}  // namespace gpuctl::bench
