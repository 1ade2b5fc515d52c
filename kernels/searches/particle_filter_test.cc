#include "kernels/searches/particle_filter.h"

#include <gtest/gtest.h>

#include "kernels/problem/words.h"
#include "kernels/searches/particle_likelihood.h"

namespace gpuctl::bench::particle_filter {
namespace {

// The object of frame f is at (20 + f, 20 - f / 2).
TEST(ParticleFilter, FollowsTheObject) {
  const Extent extent{3000, 12};
  const std::vector<float> out = as_floats(reference(extent, generate(extent, 3)));
  double x = 0;
  double y = 0;
  for (std::size_t i = 0; i < extent.x; ++i) {
    x += out[2 * i] / extent.x;
    y += out[2 * i + 1] / extent.x;
  }
  EXPECT_NEAR(x, 20 + 11, 1.5);
  EXPECT_NEAR(y, 20 - 5, 1.5);
}

TEST(ParticleFilter, BrightParticlesAreHeavy) {
  EXPECT_EQ(weight_of(13 * bright_rather_than_dark(60), 13), 1u);
  EXPECT_GT(weight_of(13 * bright_rather_than_dark(220), 13), 100u);
  EXPECT_LE(weight_of(13 * bright_rather_than_dark(255), 13), 1 + static_cast<unsigned>(kHeaviest));
}

}  // namespace
}  // namespace gpuctl::bench::particle_filter
