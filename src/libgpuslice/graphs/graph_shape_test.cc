#include "libgpuslice/graphs/graph_shape.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuslice {
namespace {

using Order = std::vector<std::size_t>;

TEST(GraphShape, NothingIsAChain) {
  const GraphShape shape = shape_of(0, {});
  EXPECT_TRUE(shape.chain);
  EXPECT_TRUE(shape.order.empty());
}

TEST(GraphShape, AChainInAnyNumbering) {
  const GraphShape shape = shape_of(4, {{2, 0}, {0, 3}, {3, 1}});
  EXPECT_TRUE(shape.chain);
  EXPECT_EQ(shape.order, (Order{2, 0, 3, 1}));
}

TEST(GraphShape, AChainWithEdgesThatSayNothingNew) {
  const GraphShape shape = shape_of(3, {{0, 1}, {1, 2}, {0, 2}});
  EXPECT_TRUE(shape.chain);
  EXPECT_EQ(shape.order, (Order{0, 1, 2}));
}

TEST(GraphShape, AForkIsNone) {
  const GraphShape shape = shape_of(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  EXPECT_FALSE(shape.chain);
  EXPECT_EQ(shape.order, (Order{0, 1, 2, 3}));
}

TEST(GraphShape, NodesWithoutEdgesAreNone) {
  const GraphShape shape = shape_of(2, {});
  EXPECT_FALSE(shape.chain);
  EXPECT_EQ(shape.order, (Order{0, 1}));
}

TEST(GraphShape, EveryNodeComesBehindThoseItDependsOn) {
  const std::vector<std::pair<std::size_t, std::size_t>> edges = {{5, 2}, {4, 2}, {2, 0}, {3, 0}, {4, 1}, {0, 1}};
  const GraphShape shape = shape_of(6, edges);
  ASSERT_EQ(shape.order.size(), 6u);
  const auto place = [&](std::size_t node) { return std::find(shape.order.begin(), shape.order.end(), node); };
  for (const auto& [from, to] : edges) EXPECT_LT(place(from), place(to)) << from << " -> " << to;
}

}  // namespace
}  // namespace gpuslice
