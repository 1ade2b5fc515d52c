#include "gpuctld/clients/latencies.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <vector>

namespace gpuctl::daemon::latencies_test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kMs = 1'000'000;

struct Page : ipc::LatencyCounts {
  Page() : ipc::LatencyCounts{} {}
  void burst(std::uint64_t ms, std::uint32_t times = 1) { bursts[latency_bucket(ms * kMs)] += times, ++counted; }
  void request(std::uint64_t ms, std::uint32_t times = 1) { requests[latency_bucket(ms * kMs)] += times, ++counted; }
};

TEST(ClientLatency, TellsWhatIsNew) {
  Page page;
  ClientLatency latency;
  EXPECT_FALSE(latency.look(page, kSecond));
  EXPECT_TRUE(latency.describe().empty());
  page.burst(2, 99);
  page.burst(100);
  EXPECT_EQ(latency.look(page, 2 * kSecond)->histogram.count(), 100u);
  EXPECT_FALSE(latency.look(page, 3 * kSecond));
  page.burst(2);
  EXPECT_EQ(latency.look(page, 30 * kSecond)->histogram.count(), 1u);
  const auto said = latency.describe();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[0].seconds, 10);
  EXPECT_EQ(said[0].count, 1);
  EXPECT_EQ(said[1].seconds, 0);
  EXPECT_EQ(said[1].count, 101);
  EXPECT_EQ(said[1].of, "bursts");
  EXPECT_NEAR(said[1].p50_us, 2000, 125);
  EXPECT_NEAR(said[1].p999_us, 100'000, 6250);
}

TEST(ClientLatency, CountsRequestsAloneFromTheFirstOn) {
  Page page;
  ClientLatency latency;
  page.burst(50, 1000);
  latency.look(page, kSecond);
  page.burst(50);
  page.request(3, 4);
  const auto more = latency.look(page, 2 * kSecond);
  EXPECT_EQ(more->counted, Counted::requests);
  EXPECT_EQ(more->histogram.count(), 4u);
  page.burst(50);
  EXPECT_FALSE(latency.look(page, 3 * kSecond));
  const auto said = latency.describe();
  EXPECT_EQ(said.back().of, "requests");
  EXPECT_EQ(said.back().count, 4);
}

TEST(ClientLatency, SaysOfTheLastBucketWhereItBegins) {
  Page page;
  ClientLatency latency;
  page.burst(3'000'000);
  latency.look(page, kSecond);
  EXPECT_DOUBLE_EQ(latency.describe().back().p50_us, 128'849'018.88);
}

TEST(SliceLatencies, AddsUpAllByOctaves) {
  SliceLatencies latencies;
  ipc::SliceTotals totals;
  latencies.add_up("a", totals);
  EXPECT_TRUE(totals.latency.empty());
  Page page;
  page.burst(0, 3);  // the shortest bucket
  page.burst(5, 40);
  page.burst(6, 60);
  page.burst(3'000'000);  // the longest
  ClientLatency latency;
  latencies.add("a/b", 0, *latency.look(page, kSecond), kSecond);
  latencies.add_up("a", totals);
  ASSERT_EQ(totals.latency.size(), 3u);
  EXPECT_DOUBLE_EQ(totals.latency[0].to_us, 16.384);
  EXPECT_EQ(totals.latency[0].count, 3);
  EXPECT_DOUBLE_EQ(totals.latency[1].to_us, 8388.608) << "both are in one octave";
  EXPECT_EQ(totals.latency[1].count, 100);
  EXPECT_DOUBLE_EQ(totals.latency[2].to_us, 137438953.472);
  EXPECT_EQ(totals.latency[2].count, 1);
  EXPECT_NEAR(totals.latency_seconds, 128.849 + 0.56, 0.04);
}

TEST(ClientLatency, TheFirstBurstsOfAProgramAreNotWarm) {
  Page page;
  ClientLatency latency;
  page.burst(3000, 3);
  EXPECT_FALSE(latency.look(page, kSecond)->warm);
  page.burst(2, 6);
  EXPECT_FALSE(latency.look(page, 3 * kSecond)->warm);
  page.burst(2);
  EXPECT_FALSE(latency.look(page, 4 * kSecond)->warm) << "nine were seen before";
  page.burst(2);
  EXPECT_TRUE(latency.look(page, 5 * kSecond)->warm);
  Page fast;
  ClientLatency another;
  for (std::uint64_t tenth = 10; tenth <= 20; ++tenth) {
    fast.burst(1, 1000);
    EXPECT_EQ(another.look(fast, tenth * kSecond / 10)->warm, tenth == 20) << tenth;
  }
}

TEST(SliceLatencies, SumsUpWhatIsWarmByItself) {
  SliceLatencies latencies;
  ClientLatency::More more{.histogram = {}, .counted = Counted::bursts};
  more.histogram.add(std::chrono::seconds{3});
  latencies.add("a/b", 0, more, kSecond);
  EXPECT_EQ(latencies.warm("a", 0), nullptr);
  more.warm = true;
  latencies.add("a/b", 0, more, 2 * kSecond);
  EXPECT_EQ(latencies.describe("a", 2 * kSecond).back().count, 2);
  EXPECT_EQ(latencies.warm("a", 0)->count(), 1u);
  EXPECT_EQ(latencies.warm("a", 1), nullptr);
}

TEST(ClientLatency, CountersMayWrap) {
  Page page;
  ClientLatency latency;
  page.burst(1, UINT32_MAX);
  latency.look(page, kSecond);
  page.burst(1, 3);
  EXPECT_EQ(latency.look(page, 2 * kSecond)->histogram.count(), 3u);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Of one that looks once a second, ten times, in bytes.
std::size_t memory_of_one(const Page& page) {
  constexpr std::size_t kMany = 1000;
  const std::size_t before = mallinfo2().uordblks;
  std::vector<ClientLatency> latencies(kMany);
  for (std::uint64_t second = 1; second <= 10; ++second) {
    Page now = page;
    for (std::uint32_t& bucket : now.bursts) bucket *= static_cast<std::uint32_t>(second);
    now.counted = static_cast<std::uint32_t>(second);
    for (ClientLatency& latency : latencies) EXPECT_TRUE(latency.look(now, second * kSecond));
  }
  return (mallinfo2().uordblks - before) / kMany;
}

/// Twelve users can have 256 programs each on eight GPUs, and the daemon has 512 MiB in all.
TEST(ClientLatency, TakesLittleMemory) {
  Page usual;
  usual.burst(2, 90);
  usual.burst(7, 9);
  EXPECT_LT(memory_of_one(usual), 1800u);
  Page any;
  for (std::uint32_t& bucket : any.bursts) bucket = 7;
  EXPECT_LT(memory_of_one(any), 5500u) << "whatever a program claims";
}
#endif

TEST(SliceLatencies, AddUpPrograms) {
  SliceLatencies slices;
  const auto more = [](std::uint64_t ms, Counted counted) {
    ClientLatency::More one{.histogram = {}, .counted = counted};
    one.histogram.add(std::chrono::milliseconds(ms));
    return one;
  };
  slices.add("a/b", 0, more(1, Counted::bursts), kSecond);
  slices.add("a", 0, more(9, Counted::bursts), kSecond);
  slices.add("a/c", 1, more(9, Counted::requests), kSecond);
  const auto count = [&](const char* slice) { return slices.describe(slice, kSecond).back().count; };
  EXPECT_EQ(count("a/b"), 1);
  EXPECT_EQ(count("a"), 3);
  EXPECT_EQ(count("/"), 3);
  EXPECT_TRUE(slices.describe("x", kSecond).empty());
  EXPECT_EQ(slices.describe("a/b", kSecond).back().of, "bursts");
  EXPECT_EQ(slices.describe("a/c", kSecond).back().of, "requests");
  EXPECT_EQ(slices.describe("a", kSecond).back().of, "bursts and requests");
  slices.keep([](const std::string& slice) { return slice != "a/b"; });
  EXPECT_TRUE(slices.describe("a/b", kSecond).empty());
  EXPECT_EQ(count("a"), 3);
}

}  // namespace
}  // namespace gpuctl::daemon::latencies_test
