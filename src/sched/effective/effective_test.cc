#include "sched/effective/effective.h"

#include <gtest/gtest.h>

#include "sched/activity.h"
#include "sched/effective/levels.h"
#include "sched/effective/weight_parts.h"
#include "sched/slice_tree.h"

namespace gpuctl::sched::effective_test {
namespace {

constexpr Caller kRoot{0, {}};

/// The entry of a slice.
template <class T>
const T& of(const SliceTree& tree, const std::vector<T>& all, std::string_view path) {
  return all[static_cast<std::size_t>(std::distance(tree.slices().begin(), tree.slices().find(path)))];
}

Effective effective(const SliceTree& tree, std::string_view path) {
  return of(tree, effective_settings(tree.slices()), path);
}

TEST(Effective, NothingIsAboveWhatTheSlicesAboveHave) {
  SliceTree tree(CapSM{132}, 0);
  ASSERT_TRUE(tree.create("team", {.max = 40, .priority = -10, .memory_max = 1000}, kRoot));
  ASSERT_TRUE(tree.create("team/a", {.max = 100, .priority = 100, .memory_max = 5000}, kRoot));
  ASSERT_TRUE(tree.create("team/a/b", {.max = 20, .priority = -20}, kRoot));
  EXPECT_EQ(effective(tree, "team").priority, -10);
  EXPECT_EQ(effective(tree, "team/a").priority, -10);
  EXPECT_EQ(effective(tree, "team/a").max, CapSM{40});
  EXPECT_EQ(effective(tree, "team/a").memory_max, 1000u);
  EXPECT_EQ(effective(tree, "team/a/b").priority, -20);
  EXPECT_EQ(effective(tree, "team/a/b").max, CapSM{20});
  EXPECT_EQ(effective(tree, "team/a/b").memory_max, 1000u);
  EXPECT_EQ(effective(tree, "/").memory_max, std::nullopt);
}

TEST(Effective, WhatIsFrozenHasNothingAndNothingBelowItHas) {
  SliceTree tree(CapSM{132}, 0);
  ASSERT_TRUE(tree.create("team", {.reserve = 16, .max = 40, .frozen = "yes"}, kRoot));
  ASSERT_TRUE(tree.create("team/a", {.reserve = 8}, kRoot));
  ASSERT_TRUE(tree.create("beside", {}, kRoot));
  for (const char* path : {"team", "team/a"}) {
    EXPECT_TRUE(effective(tree, path).frozen) << path;
    EXPECT_EQ(effective(tree, path).max, CapSM{}) << path;
    EXPECT_EQ(effective(tree, path).reserve, CapSM{}) << "others may have it";
  }
  EXPECT_FALSE(effective(tree, "beside").frozen);
  EXPECT_EQ(effective(tree, "/").reserve, CapSM{132});
  ASSERT_TRUE(tree.change("team", {.frozen = "no"}, kRoot));
  EXPECT_EQ(effective(tree, "team").max, CapSM{40}) << "what was set is as it was";
  EXPECT_EQ(effective(tree, "team/a").reserve, CapSM{8});
  ASSERT_TRUE(tree.change("team", {.frozen = "swapped"}, kRoot));
  ASSERT_TRUE(tree.change("team/a", {.frozen = "yes"}, kRoot));
  EXPECT_TRUE(effective(tree, "team/a").swapped && effective(tree, "team/a").frozen);
  EXPECT_FALSE(effective(tree, "beside").swapped);
  ASSERT_TRUE(tree.change("/", {.frozen = "yes"}, kRoot));
  EXPECT_EQ(effective(tree, "beside").max, CapSM{});
}

TEST(Effective, BelowAnIsolatedSliceEverythingIsAndReservesMeanNothing) {
  SliceTree tree(CapSM{132}, 0);
  ASSERT_TRUE(tree.create("a", {.reserve = 20}, kRoot));
  ASSERT_TRUE(tree.create("a/b", {.reserve = 10, .isolation = "isolated"}, kRoot));
  ASSERT_TRUE(tree.create("a/b/c", {.reserve = 5, .isolation = "shared"}, kRoot));
  EXPECT_FALSE(effective(tree, "/").isolated || effective(tree, "a").isolated);
  EXPECT_EQ(effective(tree, "a").reserve, CapSM{20});
  EXPECT_TRUE(effective(tree, "a/b").isolated && effective(tree, "a/b/c").isolated);
  EXPECT_EQ(effective(tree, "a/b").reserve, CapSM{});
  EXPECT_EQ(effective(tree, "a/b/c").reserve, CapSM{});
  ASSERT_TRUE(tree.change("a/b", {.isolation = "shared"}, kRoot));
  EXPECT_EQ(effective(tree, "a/b/c").reserve, CapSM{5});
  const auto wrong = tree.change("a", {.isolation = "apart"}, kRoot);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message(), "isolation: must be auto, shared or isolated");
}

TEST(Effective, TheTopmostIsolatedSliceOfAPath) {
  SliceTree tree(CapSM{132}, 0);
  for (const char* path : {"a", "a/b", "a/b/c", "d"}) ASSERT_TRUE(tree.create(path, {}, kRoot));
  ASSERT_TRUE(tree.change("a/b/c", {.isolation = "isolated"}, kRoot));
  EXPECT_EQ(topmost_isolated(tree.slices(), "a/b/c"), "a/b/c");
  EXPECT_EQ(topmost_isolated(tree.slices(), "a/b"), "");
  ASSERT_TRUE(tree.change("a", {.isolation = "isolated"}, kRoot));
  EXPECT_EQ(topmost_isolated(tree.slices(), "a/b/c"), "a");
  EXPECT_EQ(topmost_isolated(tree.slices(), "a"), "a");
  EXPECT_EQ(topmost_isolated(tree.slices(), "d"), "");
}

TEST(Effective, WithinAnIsolatedSliceTheReservesBelowItCountAlone) {
  SliceTree tree(CapSM{132}, 0);
  ASSERT_TRUE(tree.create("batch", {.reserve = 20}, kRoot));
  ASSERT_TRUE(tree.create("ls", {.reserve = 40, .max = 100, .isolation = "isolated"}, kRoot));
  ASSERT_TRUE(tree.create("ls/a", {.reserve = 30, .reserve_mode = "strict"}, kRoot));
  ASSERT_TRUE(tree.create("ls/b", {}, kRoot));
  const std::vector<NodeInput> shared = tree.nodes();  // of the root, batch, ls, ls/a and ls/b
  EXPECT_EQ(shared[1].reserve, CapSM{20});
  EXPECT_EQ(shared[2].reserve, CapSM{});
  EXPECT_EQ(shared[3].reserve, CapSM{});
  const std::vector<NodeInput> within = nodes_within(tree.slices(), shared, 2, CapSM{132});
  EXPECT_EQ(within[1].reserve, CapSM{}) << "whoever is outside is never there at the same time";
  EXPECT_EQ(within[2].reserve, CapSM{132});
  EXPECT_EQ(within[2].max, CapSM{100});
  EXPECT_EQ(within[3].reserve, CapSM{30});
  EXPECT_TRUE(within[3].strict);
  EXPECT_EQ(within[4].reserve, CapSM{});
}

TEST(Effective, NothingIsKeptFreeThatTheSliceAboveLends) {
  using namespace std::chrono_literals;
  for (const char* above : {"strict", "active"}) {
    for (const char* own : {"strict", "active"}) {
      SliceTree tree(CapSM{132}, 0);
      ASSERT_TRUE(tree.create("a", {.reserve = 20, .reserve_mode = above, .reserve_hold_ms = 70}, kRoot));
      ASSERT_TRUE(tree.create("a/b", {.reserve = 10, .reserve_mode = own, .reserve_hold_ms = 500}, kRoot));
      const Effective b = effective(tree, "a/b");
      EXPECT_EQ(b.reserve_mode, std::max(*reserve_mode(above), *reserve_mode(own))) << above << " " << own;
      if (b.reserve_mode == ReserveMode::active) {
        const bool free = above == std::string_view("strict");
        EXPECT_EQ(b.reserve_hold, free ? 500ms : 70ms) << above << " " << own;
      }
    }
  }
}

TEST(Effective, AStrictReserveIsKeptWhileTheActiveSliceAboveIsActive) {
  SliceTree tree(CapSM{132}, 0);
  ASSERT_TRUE(tree.create("a", {.reserve = 20, .reserve_hold_ms = 1}, kRoot));
  ASSERT_TRUE(tree.create("a/b", {.reserve = 10, .reserve_mode = "strict"}, kRoot));
  ASSERT_TRUE(tree.create("a/c", {}, kRoot));
  std::vector<NodeInput> nodes = tree.nodes();
  const std::vector<Work> work{{3, 5'000'000}};  // in a/c
  mark_active(nodes, work, 5'500'000);
  EXPECT_TRUE(of(tree, nodes, "a/b").keeps_reserve());
  mark_active(nodes, work, 6'000'000);
  EXPECT_FALSE(of(tree, nodes, "a/b").keeps_reserve());
}

TEST(Effective, UnderAPolicyForJobsOnlySlicesBelowTheRulingOneBound) {
  SliceTree tree(CapSM{132}, 0);
  ASSERT_TRUE(tree.create("team", {.priority = -10, .policy = "hpf"}, kRoot));
  ASSERT_TRUE(tree.create("team/a", {.priority = 5, .policy = "rr"}, kRoot));
  ASSERT_TRUE(tree.create("team/a/b", {.priority = 100}, kRoot));
  EXPECT_EQ(effective(tree, "/").ruler, -1);
  EXPECT_EQ(effective(tree, "team").ruler, 1);
  EXPECT_EQ(effective(tree, "team/a/b").ruler, 1);
  EXPECT_EQ(effective(tree, "team/a").turn_priority, 5);
  EXPECT_EQ(effective(tree, "team/a/b").turn_priority, 5);
  EXPECT_EQ(effective(tree, "team/a/b").priority, -10) << "beside programs that the slice does not rule";
}

TEST(Levels, ASliceDividesItsOwnAmongThoseBelowIt) {
  SliceTree tree(CapSM{132}, 0);
  ASSERT_TRUE(tree.create("high", {.priority = 50}, kRoot));
  ASSERT_TRUE(tree.create("low", {.priority = -10}, kRoot));
  const auto levels = [&](std::string_view path, std::int32_t priority) {
    const auto node = static_cast<std::uint32_t>(std::distance(tree.slices().begin(), tree.slices().find(path)));
    return levels_of(tree.nodes(), std::vector<LevelClient>{{node, priority}})[0];
  };
  EXPECT_EQ(levels("low", -10), (LevelRange{0, 1}));
  EXPECT_EQ(levels("/", 0), (LevelRange{1, 2}));
  EXPECT_EQ(levels("high", 50), (LevelRange{3, 2}));
  EXPECT_EQ(levels("high", 0), (LevelRange{3, 1})) << "it asked for less than its slice allows";
  for (int n = 0; n < 20; ++n) ASSERT_TRUE(tree.create("low/" + std::to_string(n), {.priority = -20 - n}, kRoot));
  ASSERT_TRUE(tree.create("low/greedy", {.priority = 100}, kRoot));
  EXPECT_EQ(levels("low/greedy", -10), (LevelRange{0, 1}));
  EXPECT_EQ(levels("low/7", -27), (LevelRange{0, 1}));
  EXPECT_EQ(levels("/", 0), (LevelRange{1, 2}));
  EXPECT_EQ(levels("high", 50), (LevelRange{3, 2}));
  ASSERT_TRUE(tree.create("high/calm", {.priority = -90}, kRoot));
  EXPECT_EQ(levels("high", 50), (LevelRange{4, 1}));
  EXPECT_EQ(levels("high/calm", -90), (LevelRange{3, 1}));
}

TEST(WeightParts, ASlicesPartIsItsOwnHoweverManyAreInIt) {
  SliceTree tree(CapSM{132}, 0);
  ASSERT_TRUE(tree.create("a", {.weight = 100}, kRoot));
  ASSERT_TRUE(tree.create("a/x", {.weight = 10'000}, kRoot));
  ASSERT_TRUE(tree.create("b", {.weight = 300}, kRoot));
  WeightParts parts;
  const std::vector<NodeInput> nodes = tree.nodes();  // root, a, a/x, b
  const auto with = [&](std::vector<std::uint32_t> own) {
    const auto found = parts.compute(nodes, own);
    return std::vector<double>(found.begin(), found.end());
  };
  EXPECT_EQ(with({0, 1, 0, 1}), (std::vector<double>{0, 0.25, 0, 0.75}));
  EXPECT_EQ(with({0, 0, 5, 1}), (std::vector<double>{0, 0, 0.05, 0.75}));
  EXPECT_EQ(with({0, 0, 5, 0}), (std::vector<double>{0, 0, 0.2, 0}));
}

}  // namespace
}  // namespace gpuctl::sched::effective_test
