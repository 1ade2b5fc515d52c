#include "gpuctld/manager/tick_pace.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kNow = 1'000'000'000, kMs = 1'000'000;

TEST(TickPace, FewClientsAreLookedAtOften) {
  TickPace pace;
  EXPECT_EQ(pace.wait(false, true, kNow), kBusyTick);
  pace.looked(false, 10us, kNow);
  EXPECT_EQ(pace.wait(false, true, kNow), kBusyTick);
  EXPECT_EQ(pace.wait(true, true, kNow), kHandoverTick);
  EXPECT_EQ(pace.wait(false, false, kNow), kIdleTick);
}

TEST(TickPace, ACrowdIsLookedAtLessOften) {
  TickPace pace;
  pace.looked(false, 800us, kNow);
  EXPECT_EQ(pace.wait(false, true, kNow), 80ms);
  pace.looked(true, 800us, kNow);
  EXPECT_EQ(pace.wait(false, true, kNow), 8ms) << "a demand that comes and goes may be anybody's";
  pace.looked(true, 100us, kNow);
  EXPECT_EQ(pace.wait(false, true, kNow), kBusyTick);
  pace.looked(false, 10ms, kNow);
  EXPECT_EQ(pace.wait(false, true, kNow), kIdleTick);
}

TEST(TickPace, AHandoverAmongACrowdLeavesTimeForOtherThings) {
  TickPace pace;
  pace.looked(true, 800us, kNow);
  EXPECT_EQ(pace.wait(true, true, kNow), 800us);
  TickPace larger;
  larger.looked(true, 80ms, kNow);
  EXPECT_EQ(larger.wait(true, true, kNow), kBusyTick);
}

/// How often the daemon looks in ten seconds if somebody always asks, and each look takes so long.
int looks(TickPace::Duration took, bool handover) {
  TickPace pace;
  int looks = 0;
  std::uint64_t now = kNow;
  while (now < kNow + 10'000 * kMs) {
    ++looks;
    now += static_cast<std::uint64_t>(took.count());
    pace.looked(true, took, now);
    now += static_cast<std::uint64_t>((handover ? pace.wait(true, true, now) : pace.rest(now)).count());
  }
  return looks;
}

TEST(TickPace, WhoAlwaysAsksTakesATenthOfACore) {
  for (const bool handover : {false, true}) {
    for (const TickPace::Duration took : {20us, 200us, 400us})
      EXPECT_LT(looks(took, handover) * took, 1200ms) << took.count() << handover;
    EXPECT_GT(looks(20us, handover) * 20us, 300ms);
  }
}

TEST(TickPace, WhoAsksSeldomIsLookedAtAtOnce) {
  TickPace pace;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t now = kNow + static_cast<std::uint64_t>(i) * kMs;
    EXPECT_EQ(pace.rest(now), 0ns) << i;
    pace.looked(true, 90us, now);
  }
}

TEST(TickPace, OthersDoNotMakeWhoAsksWaitForATick) {
  TickPace pace;
  pace.looked(true, 200ms, kNow);
  pace.looked(true, 20us, kNow + kMs);
  EXPECT_EQ(pace.rest(kNow + kMs), kCrowdedTick);
  EXPECT_EQ(pace.rest(kNow + 2 * kMs), 0ns);
}

}  // namespace
}  // namespace gpuctl::daemon
