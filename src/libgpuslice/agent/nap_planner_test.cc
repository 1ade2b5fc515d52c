#include "libgpuslice/agent/nap_planner.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr std::uint64_t kUs = 1'000, kMs = 1'000'000, kLookNs = 2'000;

/// Looks at a launch that ends at `end` and is estimated to end at `thought`. Returns how many looks it took, and how
/// late the last one was.
struct Watched {
  int looks = 0;
  std::uint64_t late = 0;
};
Watched watch(std::uint64_t end, std::uint64_t thought, bool watches_ends = false) {
  NapPlanner planner;
  Watched result;
  std::uint64_t now = 0;
  while (now < end) {
    const std::uint64_t nap = planner.nap_ns(1, now < thought ? thought - now : 0, now, watches_ends);
    now += nap == 0 ? kLookNs : nap;
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

TEST(NapPlanner, AnEndThatIsWatchedIsSeenAtOnceIfItComesAboutWhenItWasForeseen) {
  for (const std::uint64_t foreseen : {950 * kUs, 1000 * kUs, 1080 * kUs})
    EXPECT_LE(watch(1000 * kUs, foreseen, true).late, kLookNs) << foreseen;
  // Nobody looks without a pause for longer than it takes.
  EXPECT_LE(watch(100 * kMs, 1 * kMs, true).looks, 2 * kWatchNs / kLookNs + 100);
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
