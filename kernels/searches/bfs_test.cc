#include "kernels/searches/bfs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace gpuctl::bench::bfs {
namespace {

TEST(Bfs, LevelsDifferByAtMostOneAlongEdges) {
  const Extent extent{3000};
  const Problem problem = generate(extent, 3);
  const Words levels = reference(extent, problem);
  const Words& first_edge = problem.inputs[0];
  std::set<std::uint32_t> next_to_lower = {0};
  for (std::uint32_t vertex = 0; vertex < extent.x; ++vertex) {
    if (levels[vertex] == ~0u) continue;
    for (std::uint32_t edge = first_edge[vertex]; edge < first_edge[vertex + 1]; ++edge) {
      const std::uint32_t neighbor = problem.inputs[1][edge];
      ASSERT_LE(levels[neighbor], levels[vertex] + 1);
      if (levels[neighbor] == levels[vertex] + 1) next_to_lower.insert(neighbor);
    }
  }
  EXPECT_EQ(levels[0], 0u);
  EXPECT_EQ(std::ranges::count(levels, 0u), 1);
  EXPECT_EQ(next_to_lower.size(), extent.x - static_cast<std::size_t>(std::ranges::count(levels, ~0u)));
}

// The last launch visits the last level, from which nothing new is found.
TEST(Bfs, HasALaunchForEachLevel) {
  const Problem problem = generate({3000}, 3);
  std::uint32_t depth = 0;
  for (const std::uint32_t level : reference({3000}, problem)) {
    if (level != ~0u) depth = std::max(depth, level);
  }
  EXPECT_GT(depth, 2u);
  EXPECT_EQ(problem.steps.size(), depth + 2);
}

}  // namespace
}  // namespace gpuctl::bench::bfs
