#include "sched/temporal/burst_work.h"

#include <gtest/gtest.h>

namespace gpuctl::sched {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kConvolution = 1, kSort = 2, kOther = 3;

/// Bursts of `launches` that take 1 ms each.
void bursts(BurstWork& work, std::uint32_t& ended, std::uint64_t kernel, int launches, int times = 1) {
  for (int i = 0; i < times; ++i, ++ended)
    for (int launch = 0; launch < launches; ++launch) work.comes(ended, kernel), work.used(1ms);
}

TEST(BurstWork, NothingIsKnownOfTheFirstBurst) {
  BurstWork work;
  EXPECT_EQ(work.behind(1ms), Time{0});
  std::uint32_t ended = 0;
  bursts(work, ended, kSort, 50);
  EXPECT_EQ(work.behind(1ms), Time{0}) << "it did not end yet, as those of a program that never waits";
}

TEST(BurstWork, WhatIsLeftOfOneLikeThoseBefore) {
  BurstWork work;
  std::uint32_t ended = 7;  // before the policy was in force
  bursts(work, ended, kSort, 10, 3);
  work.comes(ended, kSort);
  EXPECT_EQ(work.behind(1ms), Time{9ms});
  for (int launch = 0; launch < 6; ++launch) work.used(1ms), work.comes(ended, kOther);
  EXPECT_EQ(work.behind(1ms), Time{3ms});
  work.used(3ms);
  work.comes(ended, kOther);
  EXPECT_EQ(work.behind(1ms), Time{0}) << "the last one";
  work.used(4ms);
  EXPECT_EQ(work.behind(1ms), Time{2ms}) << "late by three: as long again";
}

TEST(BurstWork, OneThatNeverEndsIsNoLongerThanOthersWere) {
  BurstWork work;
  std::uint32_t ended = 0;
  bursts(work, ended, kSort, 10);
  work.comes(ended, kSort);
  work.used(15ms);
  EXPECT_EQ(work.behind(1ms), Time{4ms});
  work.used(3600s);
  EXPECT_EQ(work.behind(1ms), Time{9ms});
}

TEST(BurstWork, OneLaunchIsAllOfItsBurst) {
  BurstWork work;
  std::uint32_t ended = 0;
  for (const Time took : {1000us, 1300us, 900us}) {
    work.comes(ended++, kSort);
    EXPECT_EQ(work.behind(1ms), Time{0});
    work.used(took);
  }
}

TEST(BurstWork, IsLearntByTheKernelThatBeginsIt) {
  BurstWork work;
  std::uint32_t ended = 0;
  bursts(work, ended, kConvolution, 40);
  bursts(work, ended, kSort, 4);
  work.comes(ended++, kConvolution);
  EXPECT_EQ(work.behind(1ms), Time{39ms});
  work.used(40ms);
  work.comes(ended++, kSort);
  EXPECT_EQ(work.behind(1ms), Time{3ms});
  work.used(4ms);
  work.comes(ended, kOther);
  EXPECT_EQ(work.behind(1ms), Time{3ms}) << "of the latest of any";
}

/// Of a program alone the daemon does not look at each launch.
TEST(BurstWork, SeveralThatEndBetweenTwoLooksCountAlike) {
  BurstWork work;
  std::uint32_t ended = UINT32_MAX - 1;  // it wraps
  work.comes(ended, kSort);
  work.used(30ms);
  work.comes(ended += 10, kSort);
  EXPECT_EQ(work.behind(1ms), Time{2ms});
}

TEST(BurstWork, NothingIsLearntOfWhatWasNotSeenWhole) {
  BurstWork work;
  std::uint32_t ended = 0;
  bursts(work, ended, kSort, 10);
  work.comes(ended, kSort);
  work.used(1ms);
  work.pause();
  work.comes(ended, kSort);
  EXPECT_EQ(work.behind(1ms), Time{8ms}) << "the same burst goes on";
  work.comes(ended += 5, kSort);
  EXPECT_EQ(work.behind(1ms), Time{9ms});
  bursts(work, ended, kSort, 2);
  work.comes(ended, kSort);
  EXPECT_EQ(work.behind(1ms), Time{7ms}) << "and learns again";
}

TEST(BurstWork, FollowsWhatChanges) {
  BurstWork work;
  std::uint32_t ended = 0;
  bursts(work, ended, kSort, 4);
  bursts(work, ended, kSort, 40, 12);
  work.comes(ended, kSort);
  EXPECT_NEAR(static_cast<double>(work.behind(1ms).count()), 39e6, 2e6);
}

TEST(BurstWork, RemembersSomeKinds) {
  BurstWork work;
  std::uint32_t ended = 0;
  for (std::uint64_t kernel = 10; kernel < 30; ++kernel) bursts(work, ended, kernel, static_cast<int>(kernel));
  work.comes(ended++, 28);
  EXPECT_EQ(work.behind(1ms), Time{27ms});
  work.used(28ms);
  work.comes(ended, 11);
  EXPECT_EQ(work.behind(1ms), Time{27ms}) << "forgotten";
}

}  // namespace
}  // namespace gpuctl::sched
