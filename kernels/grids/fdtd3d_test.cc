#include "kernels/grids/fdtd3d.h"

#include <gtest/gtest.h>

#include "kernels/grids/fdtd3d_weights.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::fdtd3d {
namespace {

TEST(Fdtd3d, SpreadsAPeakByTheWeightsOfTheStar) {
  const Extent extent{21, 23, 19};
  Problem problem = generate(extent, 1);
  const auto at = [&](std::size_t x, std::size_t y, std::size_t z) { return (z * extent.y + y) * extent.x + x; };
  std::vector<float> cells(problem.output_words, 0.0f);
  cells[at(10, 11, 9)] = 1.0f;
  problem.inputs[0] = as_words(cells);
  const std::vector<float> out = as_floats(reference(extent, problem));
  double sum = 0;
  double weights = kFdtdWeights[0];
  for (int r = 1; r <= 4; ++r) weights += 6 * double{kFdtdWeights[r]};
  for (const float cell : out) sum += cell;
  EXPECT_NEAR(sum, weights * weights, 1e-5);  // nothing has come to the border in two steps
  EXPECT_NEAR(out[at(10 + 8, 11, 9)], kFdtdWeights[4] * kFdtdWeights[4], 1e-9);
  EXPECT_NEAR(out[at(10, 11 - 8, 9)], kFdtdWeights[4] * kFdtdWeights[4], 1e-9);
  EXPECT_NEAR(out[at(10 + 3, 11, 9 - 4)], 2 * kFdtdWeights[3] * kFdtdWeights[4], 1e-9);
  EXPECT_EQ(out[at(10 + 1, 11 + 1, 9 + 1)], 0.0f);
}

}  // namespace
}  // namespace gpuctl::bench::fdtd3d
