#include "kernels/particles/nbody.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kernels/particles/nbody_force.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::nbody {
namespace {

TEST(Nbody, StepsAreNearThoseInDoubles) {
  constexpr std::size_t kBodies = 200;
  const Problem problem = generate({kBodies}, 3);
  const std::vector<float> in = as_floats(problem.inputs[0]);
  const std::vector<float> out = as_floats(reference({kBodies}, problem));
  for (std::size_t i = 0; i < kBodies; ++i) {
    std::array<double, 3> pull = {};
    for (std::size_t j = 0; j < kBodies; ++j) {
      std::array<double, 3> d;
      double square = kSoftening;
      for (std::size_t k = 0; k < 3; ++k) {
        d[k] = double{in[8 * j + k]} - in[8 * i + k];
        square += d[k] * d[k];
      }
      for (std::size_t k = 0; k < 3; ++k) pull[k] += d[k] * in[8 * j + 3] / std::pow(square, 1.5);
    }
    for (std::size_t k = 0; k < 3; ++k) {
      const double speed = in[8 * i + 4 + k] + pull[k] * kTimeStep;
      ASSERT_NEAR(out[8 * i + 4 + k], speed, 1e-3);
      ASSERT_NEAR(out[8 * i + k], in[8 * i + k] + speed * kTimeStep, 1e-5);
    }
    ASSERT_EQ(out[8 * i + 3], in[8 * i + 3]);
  }
}

}  // namespace
}  // namespace gpuctl::bench::nbody
