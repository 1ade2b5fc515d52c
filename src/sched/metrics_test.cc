#include "sched/metrics.h"

#include <gtest/gtest.h>

namespace gpuctl::sched::metrics_test {
namespace {

constexpr Time ms(int n) {
  return std::chrono::milliseconds{n};
}

TEST(Metrics, FollowTheDefinitionsOfFrs) {
  const Served jobs[] = {{ms(1), ms(1)}, {ms(2), ms(4)}, {ms(1), ms(3)}};
  const Metrics m = measure(jobs);
  EXPECT_DOUBLE_EQ(m.antt, 2);
  EXPECT_NEAR(m.dntt, 0.816497, 1e-6);  // of 1, 2, 3 over n
  EXPECT_DOUBLE_EQ(m.stp, 1 + 1 / 2.0 + 1 / 3.0);
  EXPECT_DOUBLE_EQ(m.worst, 3);
}

TEST(Metrics, OfNothingAreZero) {
  EXPECT_EQ(measure({}).antt, 0);
  EXPECT_EQ(spread({}).mean, 0);
}

TEST(Metrics, SpreadIsThatOfASample) {
  const double values[] = {1, 3};
  EXPECT_DOUBLE_EQ(spread(values).mean, 2);
  EXPECT_NEAR(spread(values).deviation, 1.414214, 1e-6);
}

}  // namespace
}  // namespace gpuctl::sched::metrics_test
