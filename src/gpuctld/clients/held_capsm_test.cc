#include "gpuctld/clients/held_capsm.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

TEST(HeldCapsm, AShrinkIsHeldUntilItIsApplied) {
  HeldCapsm held;
  held.wrote(0, 8, 1, 10);
  EXPECT_FALSE(held.pending());
  held.wrote(8, 4, 2, 20);
  ASSERT_TRUE(held.pending());
  EXPECT_EQ(held.since_ns(), 20u);
  EXPECT_EQ(held.most(), 8u);
  EXPECT_FALSE(held.heard(1, 2, 4));
  EXPECT_TRUE(held.pending());
  EXPECT_TRUE(held.heard(2, 2, 4));
  EXPECT_FALSE(held.pending());
  EXPECT_EQ(held.most(), 0u);
}

TEST(HeldCapsm, GrowthAfterAShrinkAppliesWithIt) {
  HeldCapsm held;
  held.wrote(8, 4, 5, 20);
  held.wrote(4, 9, 6, 30);
  EXPECT_EQ(held.since_ns(), 20u);
  EXPECT_EQ(held.most(), 9u);
  EXPECT_TRUE(held.heard(5, 6, 9));
  EXPECT_FALSE(held.pending());
}

TEST(HeldCapsm, WhoIsOneShrinkBehindIsSeenToFollow) {
  HeldCapsm held;
  held.wrote(8, 6, 1, 10);
  held.wrote(6, 4, 2, 20);
  EXPECT_EQ(held.most(), 8u);
  EXPECT_TRUE(held.heard(1, 2, 4));
  ASSERT_TRUE(held.pending());
  EXPECT_EQ(held.most(), 6u);
  EXPECT_EQ(held.since_ns(), 20u);
  held.wrote(4, 2, 3, 30);
  EXPECT_TRUE(held.heard(2, 3, 2));
  EXPECT_EQ(held.most(), 4u);
  EXPECT_TRUE(held.heard(3, 3, 2));
  EXPECT_FALSE(held.pending());
}

TEST(HeldCapsm, EpochsWrapAndMadeUpOnesCountForNothing) {
  HeldCapsm held;
  held.wrote(8, 4, 0xffffffffu, 10);
  held.wrote(4, 5, 0, 20);
  EXPECT_FALSE(held.heard(1, 0, 5));
  EXPECT_FALSE(held.heard(0xfffffffeu, 0, 5));
  EXPECT_TRUE(held.heard(0xffffffffu, 0, 5));
}

}  // namespace
}  // namespace gpuctl::daemon
