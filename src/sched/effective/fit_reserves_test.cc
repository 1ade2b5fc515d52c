#include "sched/effective/fit_reserves.h"

#include <gtest/gtest.h>

#include "sched/slice_tree.h"

namespace gpuctl::sched::fit_reserves_test {

constexpr Caller kRoot{0, {}};

using Counts = std::vector<std::uint32_t>;

/// By node, the root first.
Counts fitted(const SliceTree& tree, std::uint32_t sms) {
  std::vector<NodeInput> nodes = tree.nodes();
  fit_reserves(nodes, CapSM{sms});
  Counts counts;
  for (const NodeInput& node : nodes) counts.push_back(node.reserve.count);
  return counts;
}

SliceTree tree_of(std::uint32_t capacity) {
  SliceTree tree(CapSM{capacity}, 0);
  EXPECT_TRUE(tree.create("a", {.reserve = 60}, kRoot));
  EXPECT_TRUE(tree.create("a/x", {.reserve = 40}, kRoot));
  EXPECT_TRUE(tree.create("a/y", {.reserve = 20}, kRoot));
  EXPECT_TRUE(tree.create("b", {.reserve = 30}, kRoot));
  return tree;
}

auto unfit(std::uint32_t capacity, std::uint32_t device, const std::string& name) {
  const SliceTree tree = tree_of(capacity);
  return unfit_reserves(tree.slices(), tree.nodes(), CapSM{device}, name);
}

TEST(FitReserves, ChangesNothingWhereAllFit) {
  EXPECT_EQ(fitted(tree_of(132), 132), (Counts{132, 60, 40, 20, 30}));
  EXPECT_EQ(fitted(tree_of(132), 90), (Counts{90, 60, 40, 20, 30}));
  EXPECT_TRUE(unfit(132, 90, "GPU 0").empty());
}

TEST(FitReserves, GivesWhatThoseBeforeLeave) {
  EXPECT_EQ(fitted(tree_of(132), 70), (Counts{70, 60, 40, 20, 10}));
  EXPECT_EQ(fitted(tree_of(132), 50), (Counts{50, 50, 40, 10, 0}));
  const auto lines = unfit(132, 70, "GPU 1");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].first, "b");
  EXPECT_EQ(lines[0].second, "the reserve of slice b, 30 SMs, does not fit GPU 1, which has 70: it is 10 there");
  EXPECT_EQ(unfit(132, 50, "GPU 1").size(), 3u);
}

TEST(FitReserves, AMaxOfTheRootBoundsThem) {
  SliceTree tree = tree_of(132);
  ASSERT_TRUE(tree.change("/", {.max = 100}, kRoot));
  EXPECT_EQ(fitted(tree, 132), (Counts{132, 60, 40, 20, 30}));
  EXPECT_EQ(fitted(tree, 80), (Counts{80, 60, 40, 20, 20}));
}

}  // namespace gpuctl::sched::fit_reserves_test
