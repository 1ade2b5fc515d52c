#include "libgpuslice/launch/subgrids.h"

#include <gtest/gtest.h>

#include "libgpuslice/testing/fake_driver.h"

namespace gpuslice::subgrids_test {
namespace {

const auto kOne = reinterpret_cast<CUstream>(0x10), kOther = reinterpret_cast<CUstream>(0x20);
constexpr double kTargetNs = 100'000;

void launch(SubgridQueue& queue, std::uint64_t number, bool first, double waves = 1, CUstream stream = kOne) {
  queue.begin(stream, first);
  queue.launched(stream, {.number = number, .waves = waves, .expected_ns = kTargetNs, .sms = 8});
}

double wave_ns(SubgridQueue& queue, std::uint64_t number) {
  const auto ended = queue.take_ended();
  EXPECT_TRUE(ended);
  if (!ended) return -1;
  EXPECT_EQ(ended->number, number);
  return ended->wave_ns;
}

TEST(SubgridQueue, MeasuresFromTheLaunchAndFromTheEndOfTheOneInFront) {
  SubgridQueue queue;
  launch(queue, 1, true);
  launch(queue, 2, false, 4);
  EXPECT_FALSE(queue.take_ended());
  fake_event_happens(5);
  EXPECT_FALSE(queue.take_ended());
  fake_event_happens(7);
  EXPECT_NEAR(wave_ns(queue, 1), 2e6, 1);
  EXPECT_FALSE(queue.take_ended());
  fake_event_happens(8);
  EXPECT_NEAR(wave_ns(queue, 2), 250'000, 1);
  EXPECT_FALSE(queue.take_ended());
}

// The time until the launch would count, in which the GPU had nothing to do.
TEST(SubgridQueue, DoesNotMeasureAfterAPauseNorInAnotherStream) {
  SubgridQueue queue;
  launch(queue, 1, true);
  fake_event_happens(1);
  fake_event_happens(2);
  launch(queue, 2, false);
  launch(queue, 3, false, 1, kOther);
  fake_event_happens(9);
  fake_event_happens(10);
  EXPECT_NEAR(wave_ns(queue, 1), 1e6, 1);
  EXPECT_EQ(wave_ns(queue, 2), 0);
  EXPECT_EQ(wave_ns(queue, 3), 0);
}

TEST(SubgridQueue, HasRoomForOneBehindTheOneThatRuns) {
  SubgridQueue queue;
  launch(queue, 1, false);
  EXPECT_TRUE(queue.has_room(kTargetNs));
  launch(queue, 2, false);
  EXPECT_FALSE(queue.has_room(kTargetNs));
  fake_event_happens(1);
  EXPECT_FALSE(queue.has_room(kTargetNs));  // it was not looked at
  EXPECT_TRUE(queue.take_ended());
  EXPECT_TRUE(queue.has_room(kTargetNs));
  fake_event_happens(2);
}

TEST(SubgridQueue, GoesRoundItsPlaces) {
  SubgridQueue queue;
  float now_ms = 0;
  launch(queue, 1, true);
  fake_event_happens(now_ms);
  for (std::uint64_t number = 1; number < 100; ++number) {
    launch(queue, number + 1, false);
    fake_event_happens(now_ms += 3);
    EXPECT_NEAR(wave_ns(queue, number), 3e6, 500);
  }
  fake_event_happens(now_ms);
}

std::vector<TimedLaunch> over(SubgridQueue& queue) {
  std::vector<TimedLaunch> timed;
  queue.collect(timed);
  return timed;
}

TEST(SubgridQueue, TellsHowLongAWholeSeriesTook) {
  SubgridQueue queue;
  queue.begin_series({.kernel = 7, .issued_ns = 5, .blocks = 100});
  launch(queue, 1, true);
  launch(queue, 2, false, 2);
  fake_event_happens(5);
  fake_event_happens(7);
  EXPECT_NEAR(wave_ns(queue, 1), 2e6, 1);
  launch(queue, 3, false, 0.5);
  queue.end_series(true);
  fake_event_happens(11);
  EXPECT_TRUE(over(queue).empty()) << "the last one runs";
  fake_event_happens(12);
  const std::vector<TimedLaunch> timed = over(queue);
  ASSERT_EQ(timed.size(), 1u);
  EXPECT_NEAR(static_cast<double>(timed[0].gpu_ns), 7e6, 1);
  EXPECT_EQ(timed[0].job.kernel, 7u);
  EXPECT_EQ(timed[0].job.blocks, 100u);
  EXPECT_EQ(timed[0].sms, 0u);
  EXPECT_TRUE(over(queue).empty()) << "it was told";
  EXPECT_FALSE(queue.take_ended());
}

TEST(SubgridQueue, APauseInASeriesDoesNotCount) {
  SubgridQueue queue;
  queue.begin_series({.kernel = 7});
  launch(queue, 1, true, 3);
  fake_event_happens(1);
  fake_event_happens(4);
  EXPECT_NEAR(wave_ns(queue, 1), 1e6, 1);
  launch(queue, 2, false, 1);  // after an eviction
  queue.end_series(true);
  fake_event_happens(100);
  const std::vector<TimedLaunch> timed = over(queue);
  ASSERT_EQ(timed.size(), 1u);
  EXPECT_NEAR(static_cast<double>(timed[0].gpu_ns), 4e6, 1) << "a wave as long as the other three";
}

TEST(SubgridQueue, ASeriesOfWhichNothingWasLaunchedLeavesTheOthersAlone) {
  SubgridQueue queue;
  launch(queue, 1, true);  // before anybody wants to know times
  queue.begin_series({.kernel = 7});
  launch(queue, 2, false);
  queue.end_series(true);
  queue.begin_series({.kernel = 8});
  queue.end_series(false);
  EXPECT_TRUE(over(queue).empty()) << "the first one runs";
  for (const float ms : {1.0F, 3.0F, 7.0F}) fake_event_happens(ms);
  const std::vector<TimedLaunch> timed = over(queue);
  ASSERT_EQ(timed.size(), 1u);
  EXPECT_EQ(timed[0].job.kernel, 7u);
  EXPECT_NEAR(static_cast<double>(timed[0].gpu_ns), 4e6, 1) << "without the one before it";
  EXPECT_TRUE(over(queue).empty());
}

TEST(SubgridQueue, OfSomeSeriesTheTimeIsNotKnown) {
  SubgridQueue queue;
  const auto series = [&](std::uint32_t confined, bool whole) {
    queue.begin_series({.kernel = 7});
    queue.begin(kOne, true);
    queue.launched(kOne, {.number = 1, .waves = 1, .sms = 8});
    queue.begin(kOne, false);
    queue.launched(kOne, {.number = 2, .waves = 1, .sms = 4, .confined = confined});
    for (const float ms : {1.0F, 2.0F, 3.0F}) fake_event_happens(ms);
    EXPECT_TRUE(queue.take_ended());
    EXPECT_TRUE(queue.take_ended());
    queue.end_series(whole);
    return over(queue).size();
  };
  EXPECT_EQ(series(0, true), 1u);
  EXPECT_EQ(series(4, true), 0u) << "it had more SMs at first";
  EXPECT_EQ(series(0, false), 0u) << "not all of it ran";
}

TEST(Subgrids, SaysWhenThoseOfAllStreamsAreOver) {
  Subgrids all;
  EXPECT_TRUE(all.complete(0));
  launch(*all.queue_of(kOne), all.next_number(), false);
  launch(*all.queue_of(kOther), all.next_number(), false, 1, kOther);
  launch(*all.queue_of(kOne), all.next_number(), false);
  EXPECT_EQ(all.number(), 3u);
  EXPECT_FALSE(all.complete(2));
  EXPECT_EQ(all.holding(), 16u);
  fake_event_happens(1);
  EXPECT_FALSE(all.complete(2));
  fake_event_happens(1);
  EXPECT_TRUE(all.complete(2));  // not the third, which came later
  EXPECT_FALSE(all.complete(3));
  EXPECT_EQ(all.holding(), 8u);
  fake_event_happens(1);
  EXPECT_TRUE(all.complete(3));
  EXPECT_EQ(all.holding(), 0u);
}

TEST(Subgrids, ForgetsADestroyedStream) {
  Subgrids all;
  launch(*all.queue_of(kOne), all.next_number(), false);
  all.stream_destroyed(kOne);
  EXPECT_TRUE(all.complete(1));
  fake_event_happens(1);
}

}  // namespace
}  // namespace gpuslice::subgrids_test
