#include "gpuctld/clients/launch_rate.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000, kStart = 77 * kSecondNs;

TEST(LaunchRate, NothingIsKnownAtFirst) {
  LaunchRate rate;
  EXPECT_EQ(rate.per_s(), 0);
  rate.saw(1'000'000, kStart);  // launches of before count for nothing
  EXPECT_EQ(rate.per_s(), 0);
}

TEST(LaunchRate, ComesToTheRateWithinSeconds) {
  LaunchRate rate;
  for (std::uint64_t i = 0; i <= 1000; ++i) rate.saw(i * 10, kStart + i * kSecondNs / 200);  // 2,000/s for 5 s
  EXPECT_NEAR(rate.per_s(), 2000, 150);
  for (std::uint64_t i = 1; i <= 1000; ++i) rate.saw(10'000, kStart + 5 * kSecondNs + i * kSecondNs / 200);
  EXPECT_LT(rate.per_s(), 150);
}

TEST(LaunchRate, TheStepInWhichAClientPublishesDoesNotShow) {
  LaunchRate rate;
  for (std::uint64_t i = 0; i <= 2000; ++i) {
    rate.saw(i / 40 * 400, kStart + i * kSecondNs / 200);  // 400 launches each 200 ms
    if (i < 1000) continue;
    EXPECT_GT(rate.per_s(), 1000);
    EXPECT_LT(rate.per_s(), 3000);
  }
}

TEST(LaunchRate, ALongPauseOfTheReaderIsOneMean) {
  LaunchRate rate;
  rate.saw(0, kStart);
  rate.saw(30'000, kStart + 10 * kSecondNs);
  EXPECT_DOUBLE_EQ(rate.per_s(), 3000);
}

TEST(LaunchRate, ACountThatFallsBeginsAnew) {
  LaunchRate rate;
  rate.saw(1000, kStart);
  rate.saw(3000, kStart + kSecondNs);
  rate.saw(10, kStart + 2 * kSecondNs);
  EXPECT_DOUBLE_EQ(rate.per_s(), 2000);
  rate.saw(2010, kStart + 3 * kSecondNs);
  EXPECT_DOUBLE_EQ(rate.per_s(), 2000);
}

}  // namespace
}  // namespace gpuctl::daemon
