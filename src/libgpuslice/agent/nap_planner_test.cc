#include "libgpuslice/agent/nap_planner.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr std::uint64_t kUs = 1'000, kMs = 1'000'000;

/// Looks at a launch that ends at `end` and is estimated to end at `thought`. Returns how many looks it took, and how
/// late the last one was.
struct Watched {
  int looks = 0;
  std::uint64_t late = 0;
};
Watched watch(std::uint64_t end, std::uint64_t thought) {
  NapPlanner planner;
  Watched result;
  std::uint64_t now = 0;
  while (now < end) {
    now += planner.nap_ns(1, now < thought ? thought - now : 0, now);
    ++result.looks;
  }
  result.late = now - end;
  return result;
}

TEST(NapPlanner, SeesAnEndThatWasForeseenWithinOneShortNapAndWithFewLooks) {
  for (const std::uint64_t end : {50 * kUs, 400 * kUs, 3 * kMs, 50 * kMs}) {
    const Watched seen = watch(end, end);
    EXPECT_LE(seen.late, 2 * kShortestNapNs) << end;
    EXPECT_LE(seen.looks, 16) << end;
  }
}

TEST(NapPlanner, AnEndThatComesEarlierIsSeenBeforeItWasForeseen) {
  EXPECT_LE(watch(600 * kUs, 1000 * kUs).late, 200 * kUs);
}

TEST(NapPlanner, OfALaunchThatGoesOnAndOnTheEndIsSeenByAnEighthLate) {
  const Watched seen = watch(100 * kMs, 1 * kMs);
  EXPECT_LE(seen.late, 13 * kMs);
  EXPECT_LE(seen.looks, 100);
}

TEST(NapPlanner, WhatIsSaidOfOneLaunchDoesNotCountForTheNext) {
  NapPlanner planner;
  EXPECT_EQ(planner.nap_ns(1, 0, 1 * kMs), kShortestNapNs);
  EXPECT_EQ(planner.nap_ns(1, 0, 9 * kMs), 1 * kMs);
  EXPECT_EQ(planner.nap_ns(2, 0, 9 * kMs), kShortestNapNs);
  EXPECT_EQ(planner.nap_ns(2, 600 * kUs, 9 * kMs), 300 * kUs);
}

}  // namespace
}  // namespace gpuslice
