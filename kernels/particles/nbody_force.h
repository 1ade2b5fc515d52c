// What one body does to another, for both sides.
#pragma once

#include "kernels/problem/rounded.h"

namespace gpuctl::bench {

constexpr float kSoftening = 0.01f;  // keeps bodies that meet from infinite forces
constexpr float kTimeStep = 0.005f;

struct Vector {
  float x;
  float y;
  float z;
};

/// Adds to `sum` the pull that a body of a mass, at a distance (x, y, z), exerts: mass * distance / |distance|^3.
BENCH_BOTH void add_pull(Vector& sum, float x, float y, float z, float mass) {
  const float square = multiply_add(x, x, multiply_add(y, y, multiply_add(z, z, kSoftening)));
  const float inverse = divide(1.0f, square_root(square));
  const float strength = multiply(multiply(multiply(inverse, inverse), inverse), mass);
  sum.x = multiply_add(x, strength, sum.x);
  sum.y = multiply_add(y, strength, sum.y);
  sum.z = multiply_add(z, strength, sum.z);
}

}  // namespace gpuctl::bench
