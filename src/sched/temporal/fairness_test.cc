#include "sched/temporal/fairness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpuctl::sched {
namespace {

constexpr Time ms(int n) {
  return std::chrono::milliseconds{n};
}

LaunchEnd launch(int issued, int done, int alone) {
  return {.issued = ms(issued), .done = ms(done), .alone = ms(alone)};
}

class FairnessTest : public testing::Test {
 protected:
  FairnessFigures of(const std::string& slice, int now = 5000) {
    const auto all = fairness_.figures(ms(now));
    const auto found = all.find(slice);
    return found == all.end() ? FairnessFigures{} : found->second;
  }

  Fairness fairness_;
  std::uint64_t a_ = fairness_.new_program(), b_ = fairness_.new_program();
};

TEST_F(FairnessTest, AppliesTheDefinitionsToThePrograms) {
  fairness_.add(a_, "ls", launch(100, 110, 10));     // NTT 1
  fairness_.add(b_, "batch", launch(100, 130, 10));  // NTT 3
  const FairnessFigures all = of("/");
  EXPECT_EQ(all.programs, 2u);
  EXPECT_EQ(all.bursts, 2u);
  EXPECT_DOUBLE_EQ(all.applications.antt, 2);
  EXPECT_DOUBLE_EQ(all.applications.dntt, 1);
  EXPECT_DOUBLE_EQ(all.applications.stp, 1 + 1 / 3.0);
  EXPECT_DOUBLE_EQ(all.applications.worst, 3);
  EXPECT_EQ(of("ls").programs, 1u);
  EXPECT_DOUBLE_EQ(of("ls").applications.antt, 1);
  EXPECT_DOUBLE_EQ(of("batch").applications.antt, 3);
}

TEST_F(FairnessTest, CountsAProgramInEachSliceAboveIt) {
  fairness_.add(a_, "a/b/c", launch(1, 2, 1));
  for (const char* path : {"/", "a", "a/b", "a/b/c"}) EXPECT_EQ(of(path).programs, 1u) << path;
  EXPECT_EQ(fairness_.figures(ms(5)).size(), 4u);
}

// Three kernels in a row, each at once when the one before is over: the application waited once, at its beginning.
TEST_F(FairnessTest, SeveralLaunchesAreOneApplication) {
  fairness_.add(a_, "/", launch(100, 160, 10));
  fairness_.add(a_, "/", launch(101, 180, 20));
  fairness_.add(a_, "/", launch(102, 200, 20));
  const FairnessFigures figures = of("/");
  EXPECT_EQ(figures.bursts, 1u);
  EXPECT_DOUBLE_EQ(figures.applications.antt, 100 / 50.0);
  EXPECT_EQ(figures.launches.count, 3u);
  EXPECT_DOUBLE_EQ(figures.launches.mean, (6 + 1 + 1) / 3.0);
  EXPECT_DOUBLE_EQ(figures.launches.worst, 6);
  EXPECT_NEAR(figures.launches.deviation, std::sqrt((36 + 1 + 1) / 3.0 - 64 / 9.0), 1e-9);
}

TEST_F(FairnessTest, ABurstEndsWhereNothingIsOutstanding) {
  fairness_.add(a_, "/", launch(100, 110, 10));
  fairness_.add(a_, "/", launch(120, 140, 10));  // issued after the end: another burst
  EXPECT_EQ(of("/").bursts, 2u);
  EXPECT_DOUBLE_EQ(of("/").applications.antt, 30 / 20.0);  // mean times, as in FRS
}

TEST_F(FairnessTest, AnOlderLaunchThatRunsKeepsABurstOpen) {
  fairness_.add(a_, "/", launch(110, 120, 5));
  LaunchEnd next = launch(130, 140, 5);
  next.oldest_issued = ms(100);
  fairness_.add(a_, "/", next);
  fairness_.add(a_, "/", launch(100, 150, 40));
  EXPECT_EQ(of("/").bursts, 1u);
  EXPECT_DOUBLE_EQ(of("/").applications.antt, 1);  // 50 ms, in which it did 50 ms of work
}

TEST_F(FairnessTest, AProgramWithManyBurstsCountsNoMoreThanOneWithFew) {
  for (int i = 0; i < 50; ++i) fairness_.add(a_, "/", launch(100 + 10 * i, 105 + 10 * i, 5));
  fairness_.add(b_, "/", launch(100, 400, 100));
  EXPECT_EQ(of("/").bursts, 51u);
  EXPECT_DOUBLE_EQ(of("/").applications.antt, 2);  // of 1 and 3
}

TEST_F(FairnessTest, BurstsThatMissLaunchesAreNotCounted) {
  LaunchEnd one_of_several = launch(100, 110, 5);
  one_of_several.all_reported = false;
  fairness_.add(a_, "/", one_of_several);
  fairness_.add(b_, "/", launch(100, 110, 5));
  fairness_.add(b_, "/", launch(101, 120, 0));  // nobody knows how long it takes alone
  EXPECT_EQ(of("/").programs, 0u);
  EXPECT_EQ(of("/").bursts, 0u);
  EXPECT_EQ(of("/").launches.count, 2u);
  fairness_.add(a_, "/", launch(200, 210, 10));
  EXPECT_EQ(of("/").bursts, 1u);  // the next one is whole
}

TEST_F(FairnessTest, ALongBurstCountsWhileItGoesOn) {
  for (int i = 0; i < 40; ++i) fairness_.add(a_, "/", launch(100, 200 + 100 * i, 50));
  EXPECT_EQ(of("/").bursts, 1u);
  EXPECT_DOUBLE_EQ(of("/").applications.antt, 2);
}

TEST_F(FairnessTest, ForgetsWhatIsOlderThanTheWindow) {
  fairness_.add(a_, "/", launch(100, 200, 10));
  fairness_.add(a_, "/", launch(5000, 5010, 10));
  EXPECT_EQ(of("/", 10'999).bursts, 2u);
  EXPECT_EQ(of("/", 11'000).bursts, 1u);
  EXPECT_DOUBLE_EQ(of("/", 11'000).applications.antt, 1);
  EXPECT_EQ(of("/", 16'000).bursts, 0u);
  EXPECT_TRUE(fairness_.figures(ms(16'000)).empty());
}

TEST_F(FairnessTest, RemembersABoundedNumberOfPrograms) {
  for (int i = 0; i < static_cast<int>(kMostWatched) + 10; ++i)
    fairness_.add(fairness_.new_program(), "/", launch(i, i + 1, 1));
  EXPECT_EQ(fairness_.programs(), kMostWatched);
  EXPECT_EQ(of("/").programs, kMostWatched);
  // Of those, the ones that were silent for longer than the window make room first.
  fairness_.add(fairness_.new_program(), "/", launch(60'000, 60'001, 1));
  EXPECT_EQ(fairness_.programs(), 1u);
}

}  // namespace
}  // namespace gpuctl::sched
