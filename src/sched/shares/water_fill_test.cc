#include "sched/shares/water_fill.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace gpuctl::sched {
namespace {

std::vector<std::uint32_t> fill(const std::vector<Claimant>& claimants, std::uint32_t amount) {
  WaterFiller filler;
  std::vector<CapSM> parts(claimants.size());
  filler.fill(claimants, CapSM{amount}, parts);
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

TEST(WaterFill, AmongEqualsCreditsDecide) {
  const std::vector<Claimant> two{claimant(9, 1), claimant(9, 1)};
  WaterFiller filler;
  std::vector<Due> dues(2);
  std::vector<CapSM> parts(2);
  filler.share(two, due_of(CapSM{5}), dues);
  EXPECT_EQ(dues, (std::vector<Due>{kWholeSm * 5 / 2, kWholeSm * 5 / 2}));
  for (const Due credit : {-1, 0, 1}) {
    filler.round(two, dues, std::vector<Due>{0, credit}, CapSM{5}, parts);
    EXPECT_EQ(parts[1].count, credit > 0 ? 3u : 2u) << credit;
  }
}

TEST(WaterFill, WhereThereIsLessThanOneForEachWeightsDecideWhoIsDueWhat) {
  WaterFiller filler;
  std::vector<Due> dues(3);
  filler.share(std::vector<Claimant>{claimant(9, 1), claimant(9, 2), claimant(9, 1)}, due_of(CapSM{2}), dues);
  EXPECT_EQ(dues, (std::vector<Due>{kWholeSm / 2, kWholeSm, kWholeSm / 2}));
  filler.share(std::vector<Claimant>{claimant(9, 1), claimant(9, 98), claimant(9, 1)}, due_of(CapSM{4}), dues);
  EXPECT_EQ(dues, (std::vector<Due>{kWholeSm, 2 * kWholeSm, kWholeSm})) << "one for each";
  filler.share(std::vector<Claimant>{claimant(9, 1), claimant(9, 9), claimant(3, 90)}, due_of(CapSM{6}), dues);
  EXPECT_EQ(dues, (std::vector<Due>{kWholeSm, 2 * kWholeSm, 3 * kWholeSm})) << "with bounds on both sides";
}

TEST(WaterFill, NobodyIsLeftWithNothingWhileOthersHaveTwo) {
  EXPECT_EQ(fill({claimant(132, 10000), claimant(132, 1), claimant(132, 1)}, 8), (Counts{6, 1, 1}));
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
    filler.fill(claimants, CapSM{amount}, parts);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < claimants.size(); ++i) {
      ASSERT_LE(parts[i], claimants[i].demand);
      sum += parts[i].count;
      for (std::size_t j = 0; j < claimants.size(); ++j) {
        // A claimant whose demand is not met is below another by no more than the rounding.
        if (parts[i] == claimants[i].demand || parts[j].count < 2) continue;
        ASSERT_GE((parts[i].count + 1.0) / claimants[i].weight, (parts[j].count - 1.0) / claimants[j].weight);
      }
    }
    ASSERT_EQ(sum, std::min(demand, amount));
  }
}

}  // namespace
}  // namespace gpuctl::sched
