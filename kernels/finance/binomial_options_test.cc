#include "kernels/finance/binomial_options.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernels/finance/binomial_option.h"

namespace gpuctl::bench::binomial_options {
namespace {

// With one step the share ends at one of two prices.
TEST(BinomialOptions, OneStepIsTheMeanOfBothEnds) {
  const Problem problem = generate({100, 1}, 3);
  const Words out = reference({100, 1}, problem);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto field = [&](std::size_t k) { return double{std::bit_cast<float>(problem.inputs[0][5 * i + k])}; };
    const double high = std::max(field(0) * std::exp(field(2)) - field(1), 0.0);
    const double low = std::max(field(0) * std::exp(-field(2)) - field(1), 0.0);
    EXPECT_NEAR(std::bit_cast<float>(out[i]), field(3) * high + field(4) * low, 1e-4);
  }
}

double normal(double d) {
  return 0.5 * std::erfc(-d / std::sqrt(2.0));
}

// With many steps the price approaches that of the Black-Scholes formula.
TEST(BinomialOptions, ManySteps) {
  const double steps = 1000;
  const Problem problem = generate({50, 1000}, 4);
  const Words out = reference({50, 1000}, problem);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto field = [&](std::size_t k) { return double{std::bit_cast<float>(problem.inputs[0][5 * i + k])}; };
    const double spread = field(2) * std::sqrt(steps);
    const double years = spread * spread / (0.3 * 0.3);
    const double d1 = (std::log(field(0) / field(1)) + 0.02 * years) / spread + spread / 2;
    const double price = field(0) * normal(d1) - field(1) * std::exp(-0.02 * years) * normal(d1 - spread);
    EXPECT_NEAR(std::bit_cast<float>(out[i]), price, 0.02) << i;
  }
}

}  // namespace
}  // namespace gpuctl::bench::binomial_options
