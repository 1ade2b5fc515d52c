// Where a particle goes and how well it then fits the picture, for both sides. Places are pixels; every frame is a
// square of kFrameSide pixels of 0 to 255, the object bright.
#pragma once

#include "kernels/problem/approximations.h"

namespace gpuctl::bench {

constexpr int kFrameSide = 64;
constexpr float kHeaviest = 4000.0f;  // so that the weights of a million particles add up in 32 bits

struct Particle {
  float x;
  float y;
};

/// The next number of a linear congruential generator.
BENCH_BOTH unsigned next_number(unsigned number) {
  return number * 1664525u + 1013904223u;
}

/// About normally distributed with deviation 1: the sum of twelve even chances.
BENCH_BOTH float next_deviate(unsigned& number) {
  float sum = -6.0f;
  for (int i = 0; i < 12; ++i) {
    number = next_number(number);
    sum = multiply_add(static_cast<float>(number >> 8), 0x1p-24f, sum);
  }
  return sum;
}

/// The particle a frame later: the object moves by about (1, -0.5).
BENCH_BOTH Particle moved(Particle particle, unsigned seed, unsigned frame) {
  unsigned number = seed ^ (frame + 1) * 0x9e3779b9u;
  particle.x = multiply_add(next_deviate(number), 2.0f, add(particle.x, 1.0f));
  particle.y = multiply_add(next_deviate(number), 1.0f, subtract(particle.y, 0.5f));
  return particle;
}

/// The nearest pixel's index that the frame has.
BENCH_BOTH int pixel_of(float place) {
  const int index = static_cast<int>(place);
  return index < 0 ? 0 : index >= kFrameSide ? kFrameSide - 1 : index;
}

/// How much likelier a pixel of the object's disk is bright (228) than dark (100), by the usual quadratic measure.
BENCH_BOTH int bright_rather_than_dark(int pixel) {
  return ((pixel - 100) * (pixel - 100) - (pixel - 228) * (pixel - 228)) / 50;
}

/// A weight of at least 1 from the sum over the disk's pixels.
BENCH_BOTH unsigned weight_of(int sum, int pixels) {
  const float fit = approximate_exp(multiply(static_cast<float>(sum), divide(0.02f, static_cast<float>(pixels))));
  const float weight = multiply(fit, 10.0f);
  return 1 + static_cast<unsigned>(weight > kHeaviest ? kHeaviest : weight);
}

}  // namespace gpuctl::bench
