#include "libgpuslice/divide.h"

#include <gtest/gtest.h>

#include <numeric>

namespace gpuslice {
namespace {

using Shares = std::vector<std::uint32_t>;

TEST(DivideGrant, OneStreamGetsWhatItCanUse) {
  EXPECT_EQ(divide_grant(8, {{3, false}}), (Shares{3}));
  EXPECT_EQ(divide_grant(8, {{30, false}}), (Shares{8}));
}

TEST(DivideGrant, SmallDemandsLeaveTheRestToOthers) {
  EXPECT_EQ(divide_grant(12, {{2, false}, {100, false}, {100, false}}), (Shares{2, 5, 5}));
}

TEST(DivideGrant, LatencyCriticalStreamsComeFirst) {
  EXPECT_EQ(divide_grant(8, {{100, false}, {6, true}}), (Shares{2, 6}));
}

TEST(DivideGrant, NobodyStarvesWhileSomethingIsGranted) {
  EXPECT_EQ(divide_grant(2, {{9, true}, {9, false}, {9, false}}), (Shares{2, 1, 1}));
  EXPECT_EQ(divide_grant(0, {{9, true}, {9, false}}), (Shares{0, 0}));
}

TEST(DivideGrant, UsesTheWholeGrantAndNoMore) {
  for (std::uint32_t grant = 5; grant < 140; ++grant) {
    const std::vector<StreamDemand> streams{{40, false}, {7, true}, {1, false}, {90, false}, {33, true}};
    const Shares shares = divide_grant(grant, streams);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      EXPECT_LE(shares[i], streams[i].capsm);
      sum += shares[i];
    }
    // At most the streams that would have got nothing go beyond it, with 1 each.
    EXPECT_GE(sum, std::min(grant, 171u));
    EXPECT_LE(sum, grant + 3);
  }
}

}  // namespace
}  // namespace gpuslice
