// Transcendental functions that give the same bits on every processor: polynomials evaluated in one fixed order of
// operations that round as rounded.h says. Included by kernels and by their CPU references. Without branches, so that
// references can be vectorized.
#pragma once

#include "kernels/problem/rounded.h"

namespace gpuctl::bench {

/// e^x, within one unit in the last place; x below -87 counts as -87, above 88 as 88. x must not be NaN.
BENCH_BOTH float approximate_exp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  // Adding this number leaves x / ln 2, rounded to an integer n, in the low bits; e^x = 2^n e^rest.
  constexpr float kShift = 0x1.8p23f;
  const float shifted = multiply_add(x, 0x1.715476p0f, kShift);
  const float n = subtract(shifted, kShift);
  const float rest = multiply_add(n, 0x1.05c61p-29f, multiply_add(n, -0x1.62e43p-1f, x));  // ln 2 in two parts
  float sum = 1.0f / 5040;
  sum = multiply_add(sum, rest, 1.0f / 720);
  sum = multiply_add(sum, rest, 1.0f / 120);
  sum = multiply_add(sum, rest, 1.0f / 24);
  sum = multiply_add(sum, rest, 1.0f / 6);
  sum = multiply_add(sum, rest, 0.5f);
  sum = multiply_add(sum, rest, 1.0f);
  sum = multiply_add(sum, rest, 1.0f);
  return float_of(bits_of(sum) + static_cast<int>(static_cast<unsigned>(bits_of(shifted)) << 23));
}

/// The natural logarithm of x, within one unit in the last place. x must be positive, normal and finite.
BENCH_BOTH float approximate_log(float x) {
  constexpr int kRootOfHalf = 0x3f3504f3;
  const int exponent = (bits_of(x) - kRootOfHalf) >> 23;
  const float mantissa = float_of(bits_of(x) - exponent * (1 << 23));  // from the root of 1/2 to the root of 2
  // log m = 2 artanh s, s = (m - 1) / (m + 1)
  const float excess = subtract(mantissa, 1.0f);
  const float s = divide(excess, add(excess, 2.0f));
  const float square = multiply(s, s);
  float sum = 2.0f / 9;
  sum = multiply_add(sum, square, 2.0f / 7);
  sum = multiply_add(sum, square, 2.0f / 5);
  sum = multiply_add(sum, square, 2.0f / 3);
  // 2 s + s^3 sum, with 2 s = excess - s excess, whose first part is exact.
  const float correction = multiply(s, subtract(multiply(square, sum), excess));
  const float n = static_cast<float>(exponent);
  return multiply_add(n, 0x1.62e43p-1f, add(multiply_add(n, -0x1.05c61p-29f, correction), excess));
}

}  // namespace gpuctl::bench
