#include "gpuctld/held_sms.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

SmSet first(std::uint32_t count) {
  return SmSet::first(count);
}

TEST(HeldSms, AShrinkIsHeldUntilItIsApplied) {
  HeldSms held;
  held.wrote({}, first(8), 1, 10);
  EXPECT_FALSE(held.pending());
  held.wrote(first(8), first(4), 2, 20);
  ASSERT_TRUE(held.pending());
  EXPECT_EQ(held.since_ns(), 20u);
  EXPECT_EQ(held.sms(), first(8));
  EXPECT_FALSE(held.heard(1, 2, first(4)));
  EXPECT_TRUE(held.pending());
  EXPECT_TRUE(held.heard(2, 2, first(4)));
  EXPECT_FALSE(held.pending());
  EXPECT_TRUE(held.sms().empty());
}

TEST(HeldSms, GrowthAfterAShrinkAppliesWithIt) {
  HeldSms held;
  held.wrote(first(8), first(4), 5, 20);
  held.wrote(first(4), first(6), 6, 30);
  EXPECT_EQ(held.since_ns(), 20u);
  EXPECT_TRUE(held.heard(5, 6, first(6)));
  EXPECT_FALSE(held.pending());
}

TEST(HeldSms, WhoIsOneShrinkBehindIsSeenToFollow) {
  HeldSms held;
  held.wrote(first(8), first(6), 1, 10);
  held.wrote(first(6), first(4), 2, 20);
  EXPECT_EQ(held.sms(), first(8));
  EXPECT_TRUE(held.heard(1, 2, first(4)));
  ASSERT_TRUE(held.pending());
  EXPECT_EQ(held.sms(), first(6));
  EXPECT_EQ(held.since_ns(), 20u);
  held.wrote(first(4), first(2), 3, 30);
  EXPECT_TRUE(held.heard(2, 3, first(2)));
  EXPECT_EQ(held.sms(), first(4));
  EXPECT_TRUE(held.heard(3, 3, first(2)));
  EXPECT_FALSE(held.pending());
}

TEST(HeldSms, AMoveIsAShrinkToo) {
  HeldSms held;
  held.wrote(first(4), first(8) - first(4), 1, 10);
  ASSERT_TRUE(held.pending());
  EXPECT_EQ(held.sms(), first(8));
}

TEST(HeldSms, EpochsWrapAndMadeUpOnesCountForNothing) {
  HeldSms held;
  held.wrote(first(8), first(4), 0xffffffffu, 10);
  held.wrote(first(4), first(5), 0, 20);
  EXPECT_FALSE(held.heard(1, 0, first(5)));
  EXPECT_FALSE(held.heard(0xfffffffeu, 0, first(5)));
  EXPECT_TRUE(held.heard(0xffffffffu, 0, first(5)));
}

}  // namespace
}  // namespace gpuctl::daemon
