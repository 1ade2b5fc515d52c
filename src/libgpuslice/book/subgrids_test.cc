#include "libgpuslice/book/subgrids.h"

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
