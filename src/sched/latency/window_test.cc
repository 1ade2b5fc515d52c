#include "sched/latency/window.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/percentile.h"
#include "base/random.h"

namespace gpuctl::sched::latency_window_test {
namespace {

using std::chrono::milliseconds, std::chrono::seconds;

LatencyHistogram of(milliseconds latency, std::uint64_t times = 1) {
  LatencyHistogram histogram;
  histogram.add(latency, times);
  return histogram;
}

double ms(std::optional<std::chrono::nanoseconds> time) {
  return time ? std::chrono::duration<double, std::milli>(*time).count() : -1;
}

TEST(LatencyHistogram, HasNoPercentilesOfNothing) {
  EXPECT_EQ(LatencyHistogram{}.percentile(0.99), std::nullopt);
}

TEST(LatencyHistogram, AgreesWithThePercentilesOfTheValues) {
  Random random(7);
  LatencyHistogram histogram;
  std::vector<double> values;
  for (int i = 0; i < 5000; ++i) {
    const double value = 1 + 0.01 * static_cast<double>(random.below(10'000));  // 1 to 101 ms
    values.push_back(value);
    histogram.add(std::chrono::nanoseconds{static_cast<std::int64_t>(value * 1e6)});
  }
  std::ranges::sort(values);
  for (const double share : {0.0, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const double exact = percentile(values, share);
    EXPECT_NEAR(ms(histogram.percentile(share)), exact, exact / 16) << share;
  }
}

TEST(LatencyHistogram, AddsUp) {
  LatencyHistogram sum = of(milliseconds{1}, 99);
  sum += of(milliseconds{100});
  EXPECT_EQ(sum.count(), 100u);
  EXPECT_NEAR(ms(sum.percentile(0.99)), 1, 0.07);
  EXPECT_NEAR(ms(sum.percentile(0.999)), 100, 7);
}

TEST(CompactCounts, AddUpAsHistogramsDo) {
  Random random(3);
  LatencyHistogram sum;
  CompactCounts<std::uint64_t> counts;
  for (int i = 0; i < 300; ++i) {
    LatencyHistogram more;
    for (int n = 0; n < i % 3; ++n) more.add_to_bucket(random.below(kLatencyBuckets), random.below(100));
    sum += more;
    counts.add(more);
    LatencyHistogram seen;
    counts.add_to(seen);
    ASSERT_EQ(seen, sum) << i;
  }
}

TEST(CompactCounts, StayAtTheMostThatTheyHold) {
  CompactCounts<std::uint32_t> counts;
  counts.add(of(milliseconds{1}, UINT32_MAX));
  counts.add(of(milliseconds{1}, 5));
  LatencyHistogram seen;
  counts.add_to(seen);
  EXPECT_EQ(seen.count(), UINT32_MAX);
}

TEST(LatencyWindow, OfFewerStepsForgetsLater) {
  LatencyWindow window(seconds{10}, 2);
  window.add(seconds{100}, of(milliseconds{50}, 3));
  EXPECT_EQ(window.lately(seconds{114}).count(), 3u);
  EXPECT_EQ(window.lately(seconds{115}).count(), 0u);
  EXPECT_EQ(window.total().count(), 3u);
}

TEST(LatencyWindow, ForgetsWhatIsOlder) {
  LatencyWindow window;
  window.add(seconds{100}, of(milliseconds{50}, 3));
  window.add(seconds{105}, of(milliseconds{2}, 4));
  EXPECT_EQ(window.lately(seconds{105}).count(), 7u);
  EXPECT_EQ(window.lately(seconds{110}).count(), 7u);  // ten seconds ago
  EXPECT_EQ(window.lately(seconds{111}).count(), 4u);
  EXPECT_EQ(window.lately(seconds{116}).count(), 0u);
  EXPECT_EQ(window.total().count(), 7u);
}

TEST(LatencyWindow, BeginsAnewWhereItWasUsedLongBefore) {
  LatencyWindow window;
  window.add(seconds{3}, of(milliseconds{50}));
  window.add(seconds{3 + 11}, of(milliseconds{2}));  // the same step of the ring
  EXPECT_EQ(window.lately(seconds{14}), of(milliseconds{2}));
}

TEST(LatencyWindow, TellsWhatWasAddedSince) {
  LatencyWindow window(seconds{20});  // steps of 2 s
  window.add(seconds{10}, of(milliseconds{50}));
  window.add(seconds{16}, of(milliseconds{2}));
  EXPECT_EQ(window.since(seconds{17}, seconds{14}), of(milliseconds{2}));
  EXPECT_EQ(window.since(seconds{17}, seconds{0}).count(), 2u);
}

}  // namespace
}  // namespace gpuctl::sched::latency_window_test
