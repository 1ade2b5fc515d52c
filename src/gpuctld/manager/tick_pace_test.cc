#include "gpuctld/manager/tick_pace.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;

TEST(TickPace, FewClientsAreLookedAtOften) {
  TickPace pace;
  EXPECT_EQ(pace.wait(false, true), kBusyTick);
  pace.looked(false, 10us);
  EXPECT_EQ(pace.wait(false, true), kBusyTick);
  EXPECT_EQ(pace.wait(true, true), kHandoverTick);
  EXPECT_EQ(pace.wait(false, false), kIdleTick);
}

TEST(TickPace, ACrowdIsLookedAtLessOften) {
  TickPace pace;
  pace.looked(false, 800us);
  EXPECT_EQ(pace.wait(false, true), 80ms);
  pace.looked(true, 800us);
  EXPECT_EQ(pace.wait(false, true), 8ms) << "a demand that comes and goes may be anybody's";
  pace.looked(true, 100us);
  EXPECT_EQ(pace.wait(false, true), kBusyTick);
  pace.looked(false, 10ms);
  EXPECT_EQ(pace.wait(false, true), kIdleTick);
}

TEST(TickPace, AHandoverAmongACrowdLeavesTimeForOtherThings) {
  TickPace pace;
  pace.looked(true, 800us);
  EXPECT_EQ(pace.wait(true, true), 800us);
  pace.looked(true, 1s);
  EXPECT_EQ(pace.wait(true, true), kBusyTick);
}

}  // namespace
}  // namespace gpuctl::daemon
