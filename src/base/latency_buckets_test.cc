#include "base/latency_buckets.h"

#include <gtest/gtest.h>

namespace gpuctl {
namespace {

TEST(LatencyBuckets, LineUpWithoutGaps) {
  for (std::size_t i = 0; i < kLatencyBuckets; ++i) {
    EXPECT_EQ(latency_bucket(latency_bucket_begin(i)), i);
    EXPECT_EQ(latency_bucket(latency_bucket_begin(i + 1) - 1), i);
  }
}

TEST(LatencyBuckets, StandForWhatIsInThemWithinASixteenth) {
  for (std::uint64_t ns = latency_bucket_begin(0); ns < latency_bucket_begin(kLatencyBuckets); ns += ns / 37) {
    const auto stands = static_cast<double>(latency_of_bucket(latency_bucket(ns)));
    EXPECT_LE(std::abs(stands / static_cast<double>(ns) - 1), 0.0625) << ns;
  }
}

TEST(LatencyBuckets, TakeWhatIsOutsideTheirBoundsAtTheEnds) {
  EXPECT_EQ(latency_bucket(0), 0u);
  EXPECT_EQ(latency_bucket(8191), 0u);
  EXPECT_EQ(latency_bucket(UINT64_MAX), kLatencyBuckets - 1);
  EXPECT_LE(latency_bucket_begin(0), 10'000u);
  EXPECT_GE(latency_bucket_begin(kLatencyBuckets), 100'000'000'000u);
}

}  // namespace
}  // namespace gpuctl
