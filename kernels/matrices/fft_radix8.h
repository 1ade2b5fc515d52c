// A Fourier transform of eight points, and products of complex numbers, for both sides.
#pragma once

#include "kernels/problem/rounded.h"

namespace gpuctl::bench {

struct Complex {
  float re;
  float im;
};

BENCH_BOTH Complex add(Complex a, Complex b) {
  return {add(a.re, b.re), add(a.im, b.im)};
}
BENCH_BOTH Complex subtract(Complex a, Complex b) {
  return {subtract(a.re, b.re), subtract(a.im, b.im)};
}
BENCH_BOTH Complex multiply(Complex a, Complex b) {
  return {multiply_add(a.re, b.re, -multiply(a.im, b.im)), multiply_add(a.re, b.im, multiply(a.im, b.re))};
}
/// a times -i.
BENCH_BOTH Complex turned(Complex a) {
  return {a.im, -a.re};
}

BENCH_BOTH void transform2(Complex& a, Complex& b) {
  const Complex sum = add(a, b);
  b = subtract(a, b);
  a = sum;
}

/// values[k] becomes the sum over j of values[j] e^(-2 pi i j k / 8).
BENCH_BOTH void transform8(Complex (&values)[8]) {
  constexpr float kRootOfHalf = 0.70710678f;
  for (int i = 0; i < 4; ++i) transform2(values[i], values[i + 4]);
  const Complex a = values[5];
  const Complex b = values[7];
  values[5] = {multiply(add(a.re, a.im), kRootOfHalf), multiply(subtract(a.im, a.re), kRootOfHalf)};
  values[6] = turned(values[6]);
  values[7] = {multiply(subtract(b.im, b.re), kRootOfHalf), multiply(add(b.re, b.im), -kRootOfHalf)};
  for (int half = 0; half < 8; half += 4) {
    transform2(values[half], values[half + 2]);
    transform2(values[half + 1], values[half + 3]);
    values[half + 3] = turned(values[half + 3]);
    transform2(values[half], values[half + 1]);
    transform2(values[half + 2], values[half + 3]);
  }
  // So far in the order 0 4 2 6 1 5 3 7.
  const Complex one = values[4];
  const Complex three = values[6];
  values[4] = values[1];
  values[1] = one;
  values[6] = values[3];
  values[3] = three;
}

}  // namespace gpuctl::bench
