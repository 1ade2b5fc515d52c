#include "kernels/particles/lava_md.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

namespace gpuctl::bench::lava_md {
namespace {

// Two boxes along each side: every particle feels every other.
TEST(LavaMd, ForcesAreNearThoseInDoubles) {
  const Extent extent{2, 9};
  const Problem problem = generate(extent, 3);
  const Words out = reference(extent, problem);
  const std::size_t particles = 8 * 9;
  ASSERT_EQ(out.size(), particles * 4);
  const auto at = [](const Words& words, std::size_t i, std::size_t k) {
    return double{std::bit_cast<float>(words[4 * i + k])};
  };
  const Words& in = problem.inputs[0];
  for (std::size_t i = 0; i < particles; ++i) {
    std::array<double, 4> effect = {};
    for (std::size_t j = 0; j < particles; ++j) {
      double square = 0;
      for (std::size_t k = 0; k < 3; ++k) square += std::pow(at(in, i, k) - at(in, j, k), 2);
      const double potential = at(in, j, 3) * std::exp(-square / 2);
      for (std::size_t k = 0; k < 3; ++k) effect[k] += potential * (at(in, i, k) - at(in, j, k));
      effect[3] += potential;
    }
    for (std::size_t k = 0; k < 4; ++k) ASSERT_NEAR(at(out, i, k), effect[k], 1e-5) << i << " " << k;
  }
}

TEST(LavaMd, BoxesAreSurroundedByBoxes) {
  const Problem problem = generate({3, 1}, 3);
  const Words& starts = problem.inputs[1];
  ASSERT_EQ(starts.size(), 28u);
  EXPECT_EQ(starts[1] - starts[0], 8u);     // a corner
  EXPECT_EQ(starts[14] - starts[13], 27u);  // the middle
  EXPECT_EQ(starts[27], 7u * 7 * 7);
}

}  // namespace
}  // namespace gpuctl::bench::lava_md
