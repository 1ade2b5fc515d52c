#include "softgpu/device/pacing.h"

#include <gtest/gtest.h>

namespace gpuctl::softgpu {
namespace {

using namespace std::chrono_literals;
using Clock = BlockClock::Clock;

const std::atomic<bool> kRunning{false};

Clock::duration measure(auto body) {
  const Clock::time_point begin = Clock::now();
  body();
  return Clock::now() - begin;
}

TEST(BlockClock, TakesTheAverageWarpsInstructions) {
  const BlockClock clock(128, 1'000'000, {}, kRunning);       // 4 warps
  EXPECT_GE(measure([&] { clock.finish(40, false); }), 9ms);  // 10 ms since the clock was made
}

TEST(BlockClock, DoesNotSleepWhenTheHostIsBehind) {
  const BlockClock clock(32, 1000, {}, kRunning);
  EXPECT_EQ(clock.finish(0, false), 0ns);
  EXPECT_EQ(BlockClock(32, 0, {}, kRunning).finish(1'000'000'000, false), 0ns);
}

TEST(BlockClock, CarriesASmallLeadOnlyIfItMay) {
  const Clock::duration lead = BlockClock(32, 900'000, {}, kRunning).finish(1, true);
  EXPECT_GT(lead, 0ns);
  EXPECT_LE(lead, 900us);
  const BlockClock next(32, 900'000, 900us, kRunning);  // two small leads are one worth a sleep
  EXPECT_GE(measure([&] { next.finish(1, true); }), 500us);
}

TEST(BlockClock, PacesOnlyAWorthwhileLead) {
  const BlockClock clock(32, 10'000'000, {}, kRunning);
  EXPECT_GE(measure([&] { clock.pace(2); }), 19ms);
}

TEST(BlockClock, AbortEndsALongSleep) {
  const std::atomic<bool> aborted{true};
  EXPECT_EQ(BlockClock(32, 1'000'000'000, {}, aborted).finish(3600, false), 0ns);
  EXPECT_LT(measure([&] { BlockClock(32, 1'000'000'000, {}, aborted).pace(3600); }), 1h);
}

}  // namespace
}  // namespace gpuctl::softgpu
