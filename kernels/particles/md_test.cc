#include "kernels/particles/md.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

#include "kernels/particles/md_potential.h"

namespace gpuctl::bench::md {
namespace {

// Compared with all pairs of atoms, so that the lists are tested too.
TEST(Md, ForcesAreNearThoseInDoubles) {
  const Extent extent{600};
  const Problem problem = generate(extent, 3);
  const Words out = reference(extent, problem);
  const auto at = [](const Words& words, std::size_t i, std::size_t k) {
    return double{std::bit_cast<float>(words[4 * i + k])};
  };
  const Words& positions = problem.inputs[0];
  for (std::size_t i = 0; i < extent.x; ++i) {
    std::array<double, 4> force = {};
    double strengths = 0;
    for (std::size_t j = 0; j < extent.x; ++j) {
      std::array<double, 3> d;
      double square = 0;
      for (std::size_t k = 0; k < 3; ++k) {
        d[k] = at(positions, i, k) - at(positions, j, k);
        square += d[k] * d[k];
      }
      if (i == j || square >= kMdCutoffSquare) continue;
      const double strength = kMdRepulsion * std::pow(square, -7) - kMdAttraction * std::pow(square, -4);
      strengths += std::abs(strength);
      for (std::size_t k = 0; k < 3; ++k) force[k] += strength * d[k];
      force[3] += 1;
    }
    for (std::size_t k = 0; k < 3; ++k) ASSERT_NEAR(at(out, i, k), force[k], 1e-5 * strengths + 1e-6) << i << " " << k;
    ASSERT_EQ(at(out, i, 3), force[3]) << i;
  }
}

// Some listed atoms are beyond the cutoff, as in any simulation that keeps its lists for several steps.
TEST(Md, ListsReachBeyondTheCutoff) {
  const Problem problem = generate({600}, 3);
  const Words out = reference({600}, problem);
  double listed = 0;
  double within = 0;
  for (std::size_t i = 0; i < 600; ++i) {
    listed += problem.inputs[1][i];
    within += std::bit_cast<float>(out[4 * i + 3]);
  }
  EXPECT_GT(within, 0.5 * listed);
  EXPECT_LT(within, 0.9 * listed);
}

}  // namespace
}  // namespace gpuctl::bench::md
