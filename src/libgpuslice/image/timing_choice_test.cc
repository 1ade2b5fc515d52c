#include "libgpuslice/image/timing_choice.h"

#include <gtest/gtest.h>

namespace gpuslice::timing_choice_test {
namespace {

constexpr std::uint64_t kUs = 1'000, kMs = 1'000 * kUs, kStart = 1'000 * kMs;

TEST(TimingChoice, TakesTheFirstLaunchesOfEachKernel) {
  TimingChoice choice;
  for (std::uint32_t timed = 0; timed < TimingChoice::kFirst; ++timed) EXPECT_TRUE(choice.is_next(timed, kStart));
  EXPECT_FALSE(choice.is_next(TimingChoice::kFirst, kStart));
  EXPECT_TRUE(choice.is_next(0, kStart)) << "another kernel";
}

TEST(TimingChoice, TakesOneAMillisecondLater) {
  TimingChoice choice;
  int taken = 0;
  for (std::uint64_t us = 0; us < 100'000; us += 10) taken += choice.is_next(100, kStart + us * kUs);
  EXPECT_EQ(taken, 100);
}

TEST(TimingChoice, TakesAllOfAKernelThatIsLaunchedSeldom) {
  TimingChoice choice;
  for (std::uint64_t ms = 0; ms < 100; ms += 2) EXPECT_TRUE(choice.is_next(100, kStart + ms * kMs));
}

TEST(TimingChoice, DoesNotBelieveATimeInWhichTheProgramWasHeldUp) {
  EXPECT_TRUE(TimingChoice::is_credible(10 * kUs, 5 * kUs));
  EXPECT_TRUE(TimingChoice::is_credible(10 * kUs, 200 * kUs)) << "that is too little to matter";
  EXPECT_FALSE(TimingChoice::is_credible(5 * kMs, 4 * kMs));
  EXPECT_TRUE(TimingChoice::is_credible(50 * kMs, 4 * kMs)) << "most of it is the kernel's whatever happened";
  EXPECT_FALSE(TimingChoice::is_credible(0, 5 * kUs));
}

}  // namespace
}  // namespace gpuslice::timing_choice_test
