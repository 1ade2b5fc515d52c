#include <gtest/gtest.h>

#include <cmath>

#include "kernels/finance/black_scholes_formula.h"

namespace gpuctl::bench::black_scholes_test {
namespace {

double normal(double d) {
  return 0.5 * std::erfc(-d / std::sqrt(2.0));
}

TEST(BlackScholes, TheNormalDistributionIsNearTheExactOne) {
  for (int i = -500; i <= 500; ++i) {
    const float d = static_cast<float>(i) / 100;
    ASSERT_NEAR(normal_distribution(d), normal(double{d}), 5e-7) << d;
  }
}

TEST(BlackScholes, PricesAreNearTheFormulaInDoubles) {
  const double rate = 0.02;
  const double volatility = 0.3;
  for (const double price : {5.0, 17.0, 30.0}) {
    for (const double strike : {1.0, 16.0, 100.0}) {
      for (const double years : {0.25, 2.0, 10.0}) {
        const double spread = volatility * std::sqrt(years);
        const double d1 = (std::log(price / strike) + (rate + volatility * volatility / 2) * years) / spread;
        const double discounted = strike * std::exp(-rate * years);
        const double call = price * normal(d1) - discounted * normal(d1 - spread);
        const OptionPrices found = option_prices(static_cast<float>(price), static_cast<float>(strike),
                                                 static_cast<float>(years), 0.02f, 0.3f);
        EXPECT_NEAR(found.call, call, 1e-4) << price << " " << strike << " " << years;
        EXPECT_NEAR(found.put, call - price + discounted, 1e-4) << price << " " << strike << " " << years;
      }
    }
  }
}

}  // namespace
}  // namespace gpuctl::bench::black_scholes_test
