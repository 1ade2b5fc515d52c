// The Black-Scholes formula for European options, for the kernel blackScholes and its reference. The normal
// distribution is the five-term polynomial of Abramowitz and Stegun, 26.2.17 (error below 7.5e-8).
#pragma once

#include "kernels/problem/approximations.h"
#include "kernels/problem/rounded.h"

namespace gpuctl::bench {

struct OptionPrices {
  float call;
  float put;
};

/// The probability that a standard normal variable is below d.
BENCH_BOTH float normal_distribution(float d) {
  const float magnitude = d < 0.0f ? -d : d;
  const float k = divide(1.0f, multiply_add(0.2316419f, magnitude, 1.0f));
  float sum = 1.330274429f;
  sum = multiply_add(sum, k, -1.821255978f);
  sum = multiply_add(sum, k, 1.781477937f);
  sum = multiply_add(sum, k, -0.356563782f);
  sum = multiply_add(sum, k, 0.319381530f);
  const float density = multiply(0.39894228f, approximate_exp(multiply(-0.5f, multiply(d, d))));
  const float tail = multiply(density, multiply(k, sum));
  return d < 0.0f ? tail : subtract(1.0f, tail);
}

/// Prices of an option on a share that stands at `price`; years to expiry, rate and volatility by the year.
BENCH_BOTH OptionPrices option_prices(float price, float strike, float years, float rate, float volatility) {
  const float spread = multiply(volatility, square_root(years));
  const float drift = multiply(multiply_add(multiply(0.5f, volatility), volatility, rate), years);
  const float d1 = divide(add(approximate_log(divide(price, strike)), drift), spread);
  const float d2 = subtract(d1, spread);
  const float held = normal_distribution(d1);
  const float exercised = normal_distribution(d2);
  const float discounted = multiply(strike, approximate_exp(-multiply(rate, years)));
  return {subtract(multiply(price, held), multiply(discounted, exercised)),
          subtract(multiply(discounted, subtract(1.0f, exercised)), multiply(price, subtract(1.0f, held)))};
}

}  // namespace gpuctl::bench
