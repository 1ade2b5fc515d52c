#include "sched/water_fill.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace gpuctl::sched {
namespace {

std::vector<std::uint32_t> fill(const std::vector<Claimant>& claimants, std::uint32_t amount, std::uint64_t turn = 0) {
  WaterFiller filler;
  std::vector<CapSM> parts(claimants.size());
  filler.fill(claimants, CapSM{amount}, turn, parts);
  std::vector<std::uint32_t> counts;
  for (CapSM p : parts) counts.push_back(p.count);
  return counts;
}

Claimant claimant(std::uint32_t demand, std::uint32_t weight) {
  return {CapSM{demand}, weight};
}

using Counts = std::vector<std::uint32_t>;

TEST(WaterFill, EnoughForAllFillsAll) {
  EXPECT_EQ(fill({claimant(3, 1), claimant(0, 5), claimant(7, 9)}, 10), (Counts{3, 0, 7}));
}

TEST(WaterFill, DividesByWeight) {
  EXPECT_EQ(fill({claimant(132, 100), claimant(132, 50)}, 132), (Counts{88, 44}));
}

TEST(WaterFill, WhatASmallOneLeavesGoesToTheOthers) {
  EXPECT_EQ(fill({claimant(10, 100), claimant(132, 100), claimant(132, 100)}, 130), (Counts{10, 60, 60}));
}

TEST(WaterFill, LargestRemainderGetsTheOddOne) {
  EXPECT_EQ(fill({claimant(9, 1), claimant(9, 2)}, 4), (Counts{1, 3}));  // 1.33 and 2.67
}

TEST(WaterFill, TiesFollowTheTurn) {
  EXPECT_EQ(fill({claimant(9, 1), claimant(9, 1)}, 5, 0), (Counts{3, 2}));
  EXPECT_EQ(fill({claimant(9, 1), claimant(9, 1)}, 5, 1), (Counts{2, 3}));
}

TEST(WaterFill, NobodyIsLeftWithNothingWhileOthersHaveTwo) {
  EXPECT_EQ(fill({claimant(132, 10000), claimant(132, 1), claimant(132, 1)}, 8), (Counts{6, 1, 1}));
}

TEST(WaterFill, MoreClaimantsThanUnitsTakeTurns) {
  Counts total(5, 0);
  for (std::uint64_t turn = 0; turn < 5; ++turn) {
    const Counts counts = fill(std::vector<Claimant>(5, claimant(4, 7)), 2, turn);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0u), 2u);
    for (std::size_t i = 0; i < 5; ++i) total[i] += counts[i];
  }
  EXPECT_EQ(total, (Counts{2, 2, 2, 2, 2}));
}

TEST(WaterFill, NothingToPourOrNowhereToPourIt) {
  EXPECT_EQ(fill({claimant(3, 1), claimant(4, 1)}, 0), (Counts{0, 0}));
  EXPECT_EQ(fill({claimant(0, 1), claimant(0, 1)}, 9), (Counts{0, 0}));
  EXPECT_EQ(fill({}, 9), Counts{});
}

TEST(WaterFill, RandomCasesAreExactBoundedAndProportional) {
  std::mt19937 random(7);
  WaterFiller filler;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Claimant> claimants(1 + random() % 12);
    std::uint32_t demand = 0;
    for (Claimant& c : claimants)
      demand += (c = claimant(random() % 3 == 0 ? 0 : random() % 150, 1 + random() % 300)).demand.count;
    const std::uint32_t amount = random() % 200;
    std::vector<CapSM> parts(claimants.size());
    filler.fill(claimants, CapSM{amount}, random() % 16, parts);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < claimants.size(); ++i) {
      ASSERT_LE(parts[i], claimants[i].demand);
      sum += parts[i].count;
      for (std::size_t j = 0; j < claimants.size(); ++j) {
        // A claimant whose demand is not met is below another by no more than the rounding and what lift_empty moved.
        if (parts[i] == claimants[i].demand || parts[j].count < 2) continue;
        ASSERT_GT((parts[i].count + 1.0) / claimants[i].weight,
                  (parts[j].count - 1.0) / claimants[j].weight - double(claimants.size()) / claimants[i].weight);
      }
    }
    ASSERT_EQ(sum, std::min(demand, amount));
  }
}

}  // namespace
}  // namespace gpuctl::sched
