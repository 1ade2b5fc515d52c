#include "kernels/timing/statistics.h"

#include <gtest/gtest.h>

namespace gpuctl::bench {
namespace {

TEST(Summarize, NoSamples) {
  const Summary summary = summarize({});
  EXPECT_EQ(summary.p50, 0);
  EXPECT_EQ(summary.max, 0);
  EXPECT_EQ(summary.mean, 0);
}

TEST(Summarize, OneSampleIsEveryPercentile) {
  const Summary summary = summarize({3.5});
  EXPECT_EQ(summary.p50, 3.5);
  EXPECT_EQ(summary.p99, 3.5);
  EXPECT_EQ(summary.max, 3.5);
}

TEST(Summarize, NearestRankOfUnsortedSamples) {
  std::vector<double> samples;
  for (int i = 200; i >= 1; --i) samples.push_back(i);
  const Summary summary = summarize(samples);
  EXPECT_EQ(summary.p50, 100);
  EXPECT_EQ(summary.p90, 180);
  EXPECT_EQ(summary.p99, 198);
  EXPECT_EQ(summary.max, 200);
  EXPECT_DOUBLE_EQ(summary.mean, 100.5);
}

}  // namespace
}  // namespace gpuctl::bench
