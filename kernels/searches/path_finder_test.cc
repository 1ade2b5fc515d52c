#include "kernels/searches/path_finder.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuctl::bench::path_finder {
namespace {

/// The cheapest way from row 0 to a cell, over all ways.
std::uint32_t cheapest(const Words& wall, std::uint32_t columns, std::uint32_t row, std::uint32_t column) {
  const std::uint32_t cost = wall[row * columns + column];
  if (row == 0) return cost;
  std::uint32_t least = ~0u;
  for (std::uint32_t above = column == 0 ? 0 : column - 1; above <= std::min(column + 1, columns - 1); ++above) {
    least = std::min(least, cheapest(wall, columns, row - 1, above));
  }
  return cost + least;
}

TEST(PathFinder, FindsTheCheapestOfAllWays) {
  const Extent extent{11, 9};
  const Problem problem = generate(extent, 3);
  const Words out = reference(extent, problem);
  for (std::uint32_t column = 0; column < extent.x; ++column) {
    EXPECT_EQ(out[column], cheapest(problem.inputs[0], extent.x, extent.y - 1, column));
  }
}

TEST(PathFinder, LaunchesTogetherGoDownAllRows) {
  for (const std::uint32_t rows : {2u, 20u, 21u, 22u, 101u}) {
    std::uint32_t reached = 1;
    const Problem problem = generate({300, rows}, 3);
    for (const Step& step : problem.steps) {
      EXPECT_EQ(step.arguments[4].value, reached);
      reached += step.arguments[5].value;
    }
    EXPECT_EQ(reached, rows);
    EXPECT_EQ(problem.steps.back().arguments[2].kind, Argument::Kind::kOutput);
  }
}

}  // namespace
}  // namespace gpuctl::bench::path_finder
