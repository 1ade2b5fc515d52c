#include "kernels/problem/approximations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace gpuctl::bench {
namespace {

double units_off(float found, double right) {
  return std::abs(found - right) / std::ldexp(1.0, std::ilogb(static_cast<float>(right)) - 23);
}

TEST(Approximations, ExpIsWithinOneUnit) {
  double worst = 0;
  for (int i = 0; i <= 1'000'000; ++i) {
    const float x = -87.0f + 175.0f * static_cast<float>(i) / 1'000'000;
    worst = std::max(worst, units_off(approximate_exp(x), std::exp(double{x})));
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_EQ(approximate_exp(0.0f), 1.0f);
}

TEST(Approximations, ExpIsClamped) {
  EXPECT_EQ(approximate_exp(-1000.0f), approximate_exp(-87.0f));
  EXPECT_EQ(approximate_exp(1000.0f), approximate_exp(88.0f));
}

TEST(Approximations, LogIsWithinOneUnit) {
  double worst = 0;
  for (int bits = 0x00800000; bits < 0x7f800000; bits += 1999) {
    const float x = float_of(bits);
    worst = std::max(worst, units_off(approximate_log(x), std::log(double{x})));
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_EQ(approximate_log(1.0f), 0.0f);
}

// Around 1 the logarithm is small: no digits may cancel.
TEST(Approximations, LogIsWithinOneUnitNearOne) {
  double worst = 0;
  for (int bits = bits_of(0.7f); bits < bits_of(1.5f); bits += 13) {
    const float x = float_of(bits);
    if (x != 1.0f) worst = std::max(worst, units_off(approximate_log(x), std::log(double{x})));
  }
  EXPECT_LT(worst, 1.0);
}

}  // namespace
}  // namespace gpuctl::bench
