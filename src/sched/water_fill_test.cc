#include "sched/water_fill.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace gpuctl::sched {
namespace {

std::vector<std::uint32_t> fill(const std::vector<Vessel>& vessels, std::uint32_t amount, std::uint64_t turn = 0) {
  WaterFiller filler;
  std::vector<CapSM> poured(vessels.size());
  filler.fill(vessels, CapSM{amount}, turn, poured);
  std::vector<std::uint32_t> counts;
  for (CapSM p : poured) counts.push_back(p.count);
  return counts;
}

Vessel vessel(std::uint32_t room, std::uint32_t weight) {
  return {CapSM{room}, weight};
}

using Counts = std::vector<std::uint32_t>;

TEST(WaterFill, EnoughForAllFillsAll) {
  EXPECT_EQ(fill({vessel(3, 1), vessel(0, 5), vessel(7, 9)}, 10), (Counts{3, 0, 7}));
}

TEST(WaterFill, DividesByWeight) {
  EXPECT_EQ(fill({vessel(132, 100), vessel(132, 50)}, 132), (Counts{88, 44}));
}

TEST(WaterFill, WhatASmallOneLeavesGoesToTheOthers) {
  EXPECT_EQ(fill({vessel(10, 100), vessel(132, 100), vessel(132, 100)}, 130), (Counts{10, 60, 60}));
}

TEST(WaterFill, LargestRemainderGetsTheOddOne) {
  EXPECT_EQ(fill({vessel(9, 1), vessel(9, 2)}, 4), (Counts{1, 3}));  // 1.33 and 2.67
}

TEST(WaterFill, TiesFollowTheTurn) {
  EXPECT_EQ(fill({vessel(9, 1), vessel(9, 1)}, 5, 0), (Counts{3, 2}));
  EXPECT_EQ(fill({vessel(9, 1), vessel(9, 1)}, 5, 1), (Counts{2, 3}));
}

TEST(WaterFill, NobodyIsLeftWithNothingWhileOthersHaveTwo) {
  EXPECT_EQ(fill({vessel(132, 10000), vessel(132, 1), vessel(132, 1)}, 8), (Counts{6, 1, 1}));
}

TEST(WaterFill, MoreVesselsThanUnitsTakeTurns) {
  Counts total(5, 0);
  for (std::uint64_t turn = 0; turn < 5; ++turn) {
    const Counts counts = fill(std::vector<Vessel>(5, vessel(4, 7)), 2, turn);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0u), 2u);
    for (std::size_t i = 0; i < 5; ++i) total[i] += counts[i];
  }
  EXPECT_EQ(total, (Counts{2, 2, 2, 2, 2}));
}

TEST(WaterFill, NothingToPourOrNowhereToPourIt) {
  EXPECT_EQ(fill({vessel(3, 1), vessel(4, 1)}, 0), (Counts{0, 0}));
  EXPECT_EQ(fill({vessel(0, 1), vessel(0, 1)}, 9), (Counts{0, 0}));
  EXPECT_EQ(fill({}, 9), Counts{});
}

TEST(WaterFill, RandomCasesAreExactBoundedAndProportional) {
  std::mt19937 random(7);
  WaterFiller filler;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Vessel> vessels(1 + random() % 12);
    std::uint32_t room = 0;
    for (Vessel& v : vessels)
      room += (v = vessel(random() % 3 == 0 ? 0 : random() % 150, 1 + random() % 300)).room.count;
    const std::uint32_t amount = random() % 200;
    std::vector<CapSM> poured(vessels.size());
    filler.fill(vessels, CapSM{amount}, random() % 16, poured);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < vessels.size(); ++i) {
      ASSERT_LE(poured[i], vessels[i].room);
      sum += poured[i].count;
      for (std::size_t j = 0; j < vessels.size(); ++j) {
        // A vessel with room left is below another by no more than the rounding and what lift_empty moved.
        if (poured[i] == vessels[i].room || poured[j].count < 2) continue;
        ASSERT_GT((poured[i].count + 1.0) / vessels[i].weight,
                  (poured[j].count - 1.0) / vessels[j].weight - double(vessels.size()) / vessels[i].weight);
      }
    }
    ASSERT_EQ(sum, std::min(room, amount));
  }
}

}  // namespace
}  // namespace gpuctl::sched
