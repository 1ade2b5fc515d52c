#include "sched/kept_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.h"
#include "sched/slice_tree.h"

namespace gpuctl::sched::kept_memory_test {
namespace {

/// The root; ls (1), for which 40 are kept; batch (2); batch/a (3).
std::vector<KeptMemory> tree(std::uint64_t held_by_ls = 0, std::uint64_t held_by_batch = 0) {
  return {{-1, 0, 0}, {0, 40, held_by_ls}, {0, 0, held_by_batch}, {2, 0, 0}};
}

TEST(KeptMemory, OthersHaveWhatIsNotKept) {
  EXPECT_EQ(memory_beside(tree(), 3, 100).bytes, 60u);
  EXPECT_EQ(memory_beside(tree(), 3, 100).kept_for, 1u);
  EXPECT_EQ(memory_beside(tree(), 0, 100).bytes, 60u);
  EXPECT_EQ(memory_beside(tree(0, 25), 3, 100).bytes, 35u);
  EXPECT_EQ(memory_beside(tree(30), 3, 100).bytes, 60u) << "what it holds is part of that";
  EXPECT_EQ(memory_beside(tree(50), 3, 100).bytes, 50u) << "what it holds beyond that counts too";
  EXPECT_FALSE(memory_beside(tree(50), 3, 100).kept_for);
}

TEST(KeptMemory, TheSliceHasItWhateverOthersHold) {
  EXPECT_EQ(memory_beside(tree(), 1, 100).bytes, 100u);
  EXPECT_EQ(memory_beside(tree(0, 60), 1, 100).bytes, 40u);
  EXPECT_FALSE(memory_beside(tree(0, 60), 1, 100).kept_for) << "nothing of another one's";
  EXPECT_EQ(memory_beside(tree(0, 90), 1, 100).bytes, 40u) << "set when others had it";
  EXPECT_EQ(memory_beside(tree(30, 60), 1, 100).bytes, 10u) << "beside another program in it";
}

TEST(KeptMemory, WhatIsKeptBelowIsPartOfThatAbove) {
  // 60 for the user, of which 50 are for one slice below.
  const std::vector<KeptMemory> nodes{{-1, 0, 0}, {0, 60, 0}, {1, 50, 0}, {1, 0, 0}, {0, 0, 0}};
  EXPECT_EQ(memory_beside(nodes, 4, 100).bytes, 40u);
  EXPECT_EQ(memory_beside(nodes, 3, 100).bytes, 50u) << "beside the 50";
  EXPECT_EQ(memory_beside(nodes, 2, 100).bytes, 100u);
}

TEST(KeptMemory, WhatIsTooMuchIsDivided) {
  const std::vector<KeptMemory> nodes{{-1, 0, 0}, {0, 60, 0}, {0, 20, 0}};
  EXPECT_EQ(memory_beside(nodes, 1, 40).bytes, 30u);
  EXPECT_EQ(memory_beside(nodes, 2, 40).bytes, 10u);
}

TEST(KeptMemory, WhoeverAsksWhenEachGetsWhatIsKept) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<KeptMemory> nodes{{-1, 0, 0}, {0, 50, 0}, {0, 30, 0}, {1, 20, 0}, {1, 10, 0}, {0, 0, 0}};
    for (int step = 0; step < 50; ++step) {
      const std::size_t who = random.below(nodes.size());
      const std::uint64_t own = nodes[who].held;
      nodes[who].held = 0;
      const std::uint64_t most = memory_beside(nodes, who, 100).bytes;
      nodes[who].held = std::min<std::uint64_t>(most, random.below(2) == 0 ? own / 2 : own + random.below(40));
      std::uint64_t sum = 0;
      for (const KeptMemory& node : nodes) sum += node.held;
      ASSERT_LE(sum, 100u);
    }
    // Whatever came before, each takes what is kept for it, and no more than there is is held then. What is kept for 1
    // beyond that of those below it is for whoever of them is first.
    const std::uint64_t kept[] = {0, 0, 30, 20, 10, 0};
    std::uint64_t sum = 0;
    for (std::size_t who = 0; who < nodes.size(); ++who) {
      const std::uint64_t own = std::exchange(nodes[who].held, 0);
      ASSERT_GE(memory_beside(nodes, who, 100).bytes, std::max(own, kept[who])) << who;
      nodes[who].held = std::max(own, kept[who]);
      sum += nodes[who].held;
    }
    ASSERT_LE(sum, 100u);
  }
}

TEST(KeptMemory, WhatDoesNotFitIsSaid) {
  SliceTree tree(CapSM{132}, 0);
  const SliceChange both{.memory_min = 70}, bounded{.memory_min = 10, .memory_max = 5}, below{.memory_min = 60};
  std::size_t at = 0;
  const std::vector<SliceTree::Edit> edits{{"a", &both}, {"a/x", &below}, {"b", &both}};
  ASSERT_TRUE(tree.apply(edits, {0, {}}, CapSM{256}, at)) << "as from a configuration, for any GPU";
  using Lines = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(unfit_memory(tree.slices(), tree.effective(), 140, "GPU 0"), Lines());
  EXPECT_EQ(kept_on(tree.effective(), 80), (std::vector<std::uint64_t>{0, 40, 40, 40}));
  EXPECT_EQ(
      unfit_memory(tree.slices(), tree.effective(), 80, "GPU 0"),
      (Lines{{"a", "the memory_min of slice a, 70, does not fit GPU 0, which has 80: it is 40 there"},
             {"a/x", "the memory_min of slice a/x, 60, does not fit slice a, which has 40 of GPU 0: it is 40 there"},
             {"b", "the memory_min of slice b, 70, does not fit GPU 0, which has 80: it is 40 there"}}));
  SliceTree small(CapSM{132}, 0);
  ASSERT_TRUE(small.apply(std::vector<SliceTree::Edit>{{"a", &bounded}}, {0, {}}, CapSM{256}, at));
  EXPECT_EQ(unfit_memory(small.slices(), small.effective(), 80, "GPU 0"), Lines()) << "its own limit is why";
}

}  // namespace
}  // namespace gpuctl::sched::kept_memory_test
