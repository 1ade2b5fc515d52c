#include "kernels/grids/stencil2d.h"

#include <gtest/gtest.h>

#include "kernels/problem/words.h"

namespace gpuctl::bench::stencil2d {
namespace {

TEST(Stencil2d, KeepsAnEvenGridAndSpreadsAPeak) {
  const Extent extent{9, 7, 1};
  Problem problem = generate(extent, 1);
  problem.inputs[0] = as_words(std::vector<float>(63, 1.0f));
  std::vector<float> out = as_floats(reference(extent, problem));
  for (const float cell : out)
    EXPECT_NEAR(cell, 1.05f, 0.0501f);  // inner cells 1.05 at most by rounding of the weights
  std::vector<float> peak(63, 0.0f);
  peak[3 * 9 + 4] = 1.0f;
  problem.inputs[0] = as_words(peak);
  out = as_floats(reference(extent, problem));
  EXPECT_EQ(out[3 * 9 + 4], 0.2f);
  EXPECT_EQ(out[3 * 9 + 5], 0.15f);
  EXPECT_EQ(out[2 * 9 + 3], 0.05f);
  EXPECT_EQ(out[1 * 9 + 4], 0.0f);
}

}  // namespace
}  // namespace gpuctl::bench::stencil2d
