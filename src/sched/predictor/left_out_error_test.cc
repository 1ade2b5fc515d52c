#include "sched/predictor/left_out_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gpuctl::sched {
namespace {

Sample sample(double blocks, double input_bytes, double us, std::uint64_t launches = 1) {
  return {{.blocks = blocks, .threads = 256, .input_bytes = input_bytes}, Time{std::llround(us * 1000)}, launches};
}

TEST(LeftOutError, IsSmallForALawThatTheModelCanHave) {
  std::vector<Sample> linear, square;
  for (int i = 1; i <= 50; ++i) {
    linear.push_back(sample(100, 1e6 * i, 50 + 3 * i));
    square.push_back(sample(100, 1e6 * i, 1 + i * i));
  }
  ASSERT_TRUE(left_out_error(linear));
  EXPECT_LT(*left_out_error(linear), 0.069);
  EXPECT_GT(*left_out_error(square), 0.2);
}

TEST(LeftOutError, OfASampleCountsNothingThatTheSampleSaid) {
  // Two alike and one that is ten times as long, without anything that tells it from the others.
  const std::vector<Sample> samples{sample(8, 0, 10), sample(8, 0, 10), sample(8, 0, 100)};
  EXPECT_NEAR(*left_out_error(samples), (4.5 + 4.5 + 0.9) / 3, 0.01);
}

TEST(LeftOutError, NeedsThreeSamples) {
  EXPECT_FALSE(left_out_error({}));
  const std::vector<Sample> two{sample(1, 0, 10), sample(2, 0, 20)};
  EXPECT_FALSE(left_out_error(two));
}

TEST(LeftOutError, ManyLaunchesOfOneShapeDoNotDrownTheOthers) {
  std::vector<Sample> samples;
  for (int i = 1; i <= 20; ++i) samples.push_back(sample(100, 1e6 * i, 100 * i, i == 1 ? 1'000'000 : 1));
  EXPECT_LT(*left_out_error(samples), 0.3);
}

}  // namespace
}  // namespace gpuctl::sched
