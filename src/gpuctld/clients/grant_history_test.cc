#include "gpuctld/clients/grant_history.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

TEST(GrantHistory, GivesTheMeanOverTheTimeWithSms) {
  GrantHistory history;
  history.wrote(8, 100);
  history.wrote(0, 200);
  history.wrote(2, 300);
  const auto held = history.held(150, 450, 132);
  ASSERT_TRUE(held);
  EXPECT_EQ(held->ns, 200u) << "not while it was evicted";
  EXPECT_DOUBLE_EQ(held->capsm, (50 * 8 + 150 * 2) / 200.0);
  EXPECT_EQ(held->least, 2u);
  EXPECT_EQ(held->most, 8u);
}

TEST(GrantHistory, CountsNoMoreThanALaunchCanUse) {
  GrantHistory history;
  history.wrote(8, 100);
  EXPECT_DOUBLE_EQ(history.held(150, 250, 3)->capsm, 3);
}

TEST(GrantHistory, DoesNotCountWhatCameLater) {
  GrantHistory history;
  history.wrote(8, 100);
  history.wrote(4, 300);
  EXPECT_DOUBLE_EQ(history.held(150, 250, 132)->capsm, 8);
}

TEST(GrantHistory, SaysNothingOfWhatItDoesNotKnow) {
  GrantHistory history;
  EXPECT_FALSE(history.held(0, 100, 132));
  history.wrote(8, 100);
  EXPECT_FALSE(history.held(50, 200, 132)) << "what it had before 100 is not known";
  EXPECT_FALSE(history.held(200, 200, 132));
  EXPECT_FALSE(history.held(300, 200, 132));
  history.wrote(0, 300);
  EXPECT_FALSE(history.held(300, 400, 132)) << "nothing all the time";
  for (std::uint32_t i = 0; i < 100; ++i) history.wrote(1 + i % 2, 400 + i);
  EXPECT_FALSE(history.held(150, 500, 132)) << "forgotten";
  EXPECT_TRUE(history.held(440, 500, 132));
}

}  // namespace
}  // namespace gpuctl::daemon
