#include "libgpuslice/driver/sm_groups.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(SmGroups, EightSmsOrAnEighthOfASmallDeviceInPairs) {
  EXPECT_EQ(group_sms(132), 8u);
  EXPECT_EQ(group_sms(64), 8u);
  EXPECT_EQ(group_sms(40), 4u);
  EXPECT_EQ(group_sms(8), 2u);
  EXPECT_EQ(group_sms(1), 2u);
}

TEST(SmGroups, OnlyWholeGroupsCountBelowTheWholeDevice) {
  EXPECT_EQ(in_whole_groups(132, 132), 132u);
  EXPECT_EQ(in_whole_groups(200, 132), 200u);
  EXPECT_EQ(in_whole_groups(131, 132), 128u);
  EXPECT_EQ(in_whole_groups(124, 132), 120u);
  EXPECT_EQ(in_whole_groups(99, 132), 96u);
  EXPECT_EQ(in_whole_groups(8, 132), 8u);
  EXPECT_EQ(in_whole_groups(5, 8), 4u);
}

TEST(SmGroups, LessThanAGroupStaysAsItIs) {
  EXPECT_EQ(in_whole_groups(7, 132), 7u);
  EXPECT_EQ(in_whole_groups(1, 8), 1u);
  EXPECT_EQ(in_whole_groups(0, 132), 0u);
}

}  // namespace
}  // namespace gpuslice
