#include "kernels/grids/canny.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuctl::bench::canny {
namespace {

/// A dark picture with one bright box, as the kernels' only input.
Problem box(const Extent& extent, std::uint32_t light) {
  Problem problem = generate(extent, 1);
  Words& picture = problem.inputs[0];
  for (std::uint32_t i = 0; i < picture.size(); ++i) {
    const std::uint32_t x = i % extent.x;
    const std::uint32_t y = i / extent.x;
    picture[i] = x >= 20 && x < 60 && y >= 20 && y < 50 ? light : 0;
  }
  return problem;
}

TEST(Canny, FindsTheOutlineOfABoxAndNothingElse) {
  const Extent extent{100, 80};
  const Words edges = reference(extent, box(extent, 200));
  for (std::uint32_t i = 0; i < edges.size(); ++i) {
    const std::uint32_t x = i % extent.x;
    const std::uint32_t y = i / extent.x;
    const bool outside = x < 18 || x > 61 || y < 18 || y > 51;
    const bool inside = x > 22 && x < 57 && y > 22 && y < 47;
    if (outside || inside) {
      ASSERT_EQ(edges[i], 0u) << x << " " << y;
    }
  }
  for (std::uint32_t y = 25; y < 45; ++y) {
    const auto row = edges.begin() + y * extent.x;
    EXPECT_EQ(std::count(row, row + extent.x, 255u), 2) << y;
  }
}

TEST(Canny, LeavesWeakEdgesAloneOut) {
  const Extent extent{100, 80};
  const Words edges = reference(extent, box(extent, 40));
  EXPECT_EQ(std::ranges::count(edges, 255u), 0);
}

}  // namespace
}  // namespace gpuctl::bench::canny
