#include "sched/latency/alone.h"

#include <gtest/gtest.h>

#include "sched/testing/latency_plant.h"

namespace gpuctl::sched::alone_test {

using namespace plant;

namespace {

double p99_ms(const Alone& alone) {
  return static_cast<double>(alone.p99().count()) / 1e6;
}

/// A hundred bursts a second of about `mean_ms`, for so long.
void go(Alone& alone, double& now_s, double for_s, double mean_ms, Random& random) {
  for (const double end_s = now_s + for_s; now_s < end_s; now_s += 0.2) {
    LatencyHistogram ended;
    for (int burst = 0; burst < 20; ++burst) ended.add(ms(about(mean_ms, 0.1, random)));
    alone.add(ended, seconds(now_s));
  }
}

TEST(Alone, IsKnownFromThirtyBurstsOn) {
  Alone alone;
  LatencyHistogram some;
  some.add(ms(1), Alone::kEnough - 1);
  alone.add(some, seconds(1));
  EXPECT_FALSE(alone.known());
  some = {};
  some.add(ms(1));
  alone.add(some, seconds(1.1));
  EXPECT_TRUE(alone.known());
  EXPECT_NEAR(p99_ms(alone), 1, 0.07);
}

TEST(Alone, SlowBurstsAtFirstAreSoonForgotten) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Alone alone;
    double now_s = 10;
    go(alone, now_s, 0.6, 3.5, random);
    EXPECT_GT(p99_ms(alone), 3);
    go(alone, now_s, 2, 1, random);
    EXPECT_NEAR(p99_ms(alone), 1.26, 0.15);
    go(alone, now_s, 20, 1, random);
    EXPECT_NEAR(p99_ms(alone), 1.26, 0.1);
  }
}

TEST(Alone, AHiccupIsNotWhatItTakesAndALastingChangeIs) {
  Random random(1);
  Alone alone;
  double now_s = 10;
  go(alone, now_s, 10, 1, random);
  go(alone, now_s, 1, 20, random);
  EXPECT_NEAR(p99_ms(alone), 1.26, 0.1);
  go(alone, now_s, 10, 2, random);
  EXPECT_NEAR(p99_ms(alone), 2.52, 0.2);
}

TEST(Alone, TheFirstStretchCountsUntilThereIsAnother) {
  Alone alone;
  LatencyHistogram bursts;
  bursts.add(ms(1), 200);
  alone.add(bursts, seconds(1));
  alone.add(bursts, seconds(3));
  EXPECT_EQ(alone.count(), 400u);
  LatencyHistogram one;
  one.add(ms(50));
  alone.add(one, seconds(4));
  EXPECT_NEAR(p99_ms(alone), 1, 0.07) << "one burst is no stretch";
}

}  // namespace
}  // namespace gpuctl::sched::alone_test
