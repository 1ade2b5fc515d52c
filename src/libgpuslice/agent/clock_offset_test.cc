#include "libgpuslice/agent/clock_offset.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr std::int64_t kOffset = -7'000'000'000;  // the GPU's clock is ahead
constexpr std::uint64_t kMs = 1'000'000;

/// A launch that waits, runs for 2 ms, and is seen `late` after its end; all by the host's clock.
void launch(ClockOffset& clocks, std::uint64_t issued, std::uint64_t waits, std::uint64_t late) {
  const std::uint64_t start = issued + waits, done = start + 2 * kMs;
  clocks.add(issued, start - static_cast<std::uint64_t>(kOffset), done - static_cast<std::uint64_t>(kOffset),
             done + late);
}

TEST(ClockOffset, IsKnownFromTheFirstLaunch) {
  ClockOffset clocks;
  EXPECT_FALSE(clocks.known());
  launch(clocks, 1'000 * kMs, 5'000, 900'000);
  EXPECT_TRUE(clocks.known());
  EXPECT_NEAR(static_cast<double>(clocks.ns()), kOffset, 1'000);
}

TEST(ClockOffset, GoesByLaunchesThatStartAtOnce) {
  ClockOffset clocks;
  launch(clocks, 1'000 * kMs, 300 * kMs, 900'000);
  launch(clocks, 1'400 * kMs, 6'000, 900'000);
  EXPECT_NEAR(static_cast<double>(clocks.ns()), kOffset, 2'000);
}

TEST(ClockOffset, StaysRightWhereAllLaunchesWaitForSeconds) {
  ClockOffset clocks;
  launch(clocks, 1'000 * kMs, 5'000, 100'000);
  for (std::uint64_t i = 0; i < 3000; ++i) launch(clocks, 1'000 * kMs + i * 2 * kMs, 900 * kMs, i * 77'777 % kMs);
  EXPECT_NEAR(static_cast<double>(clocks.ns()), kOffset, 20'000);
}

TEST(ClockOffset, FollowsDrift) {
  ClockOffset clocks;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const std::uint64_t issued = 1'000 * kMs + i * 4 * kMs;
    const auto ahead = static_cast<std::uint64_t>(-kOffset) + i * 400;  // 100 us each second
    clocks.add(issued, issued + 5'000 + ahead, issued + kMs + ahead, issued + kMs + 200'000);
  }
  EXPECT_NEAR(static_cast<double>(clocks.ns()), kOffset - 2999 * 400, 250'000);
}

}  // namespace
}  // namespace gpuslice
