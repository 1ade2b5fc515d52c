#include "libgpuslice/launch/divide.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuslice {
namespace {

using Limit = gpuctl::Polled::Limit;
using Sizes = std::vector<std::uint32_t>;

Sizes sizes(std::uint32_t grant, const std::vector<StreamDemand>& streams) {
  Sizes result;
  for (const Limit limit : divide_grant(grant, streams))
    result.push_back(gpuctl::range_size(gpuctl::pack_range(grant, limit)));
  return result;
}

TEST(DivideGrant, EverybodyMayUseAllOfItWhileThereIsRoomForAll) {
  EXPECT_EQ(sizes(8, {{3, false}}), (Sizes{8}));
  EXPECT_EQ(sizes(8, {{3, false}, {5, false}}), (Sizes{8, 8}));
}

TEST(DivideGrant, SmallDemandsLeaveTheRestToOthers) {
  EXPECT_EQ(sizes(12, {{2, false}, {100, false}, {100, false}}), (Sizes{2, 5, 5}));
}

TEST(DivideGrant, LatencyCriticalStreamsComeFirst) {
  EXPECT_EQ(sizes(8, {{100, false}, {6, true}}), (Sizes{2, 6}));
}

TEST(DivideGrant, ALatencyCriticalStreamLeavesEveryOtherAnSmOfItsOwn) {
  EXPECT_EQ(sizes(8, {{100, true}, {100, false}, {100, false}}), (Sizes{6, 1, 1}));
}

TEST(DivideGrant, WhatNobodyDemandsIsGivenAway) {
  EXPECT_EQ(sizes(10, {{2, false}, {4, true}}), (Sizes{4, 6}));
}

TEST(DivideGrant, NobodyStarvesWhileSomethingIsGranted) {
  EXPECT_EQ(sizes(2, {{9, true}, {9, false}, {9, false}}), (Sizes{2, 1, 1}));
  EXPECT_EQ(sizes(0, {{9, true}, {9, false}}), (Sizes{0, 0}));
}

TEST(DivideGrant, UsesTheWholeGrantAndNoSmTwice) {
  for (std::uint32_t grant = 5; grant < 140; ++grant) {
    const std::vector<StreamDemand> streams{{40, false}, {7, true}, {1, false}, {90, false}, {33, true}};
    std::vector<int> uses(grant);
    int shared = 0;
    for (const Limit limit : divide_grant(grant, streams)) {
      ASSERT_LE(limit.first, limit.last);
      ASSERT_LT(limit.last, grant);
      for (std::uint32_t sm = limit.first; sm <= limit.last; ++sm) shared += ++uses[sm] > 1;
    }
    EXPECT_EQ(std::count(uses.begin(), uses.end(), 0), 0);
    EXPECT_LE(shared, 3) << "only those that would have nothing share";
  }
}

}  // namespace
}  // namespace gpuslice
