#include "gpuctl/views/top_model.h"

#include <gtest/gtest.h>

#include <boost/json/object.hpp>

namespace gpuctl::cli {
namespace {

ipc::ClientUsage usage(std::int64_t device, std::int64_t launches, std::vector<std::int64_t> histogram) {
  ipc::ClientUsage u;
  u.device = device;
  u.granted = 8;
  u.holding = 6;
  u.launches = launches;
  u.latency_us_log2 = std::move(histogram);
  return u;
}

ipc::Snapshot snapshot(std::int64_t time_ns, std::vector<ipc::Client> clients) {
  ipc::Snapshot s;
  s.time_ns = time_ns;
  s.devices = {{0, "A", "u0", "cuda", 132, 0, "mps"}, {1, "A", "u1", "cuda", 132, 0, "mps"}};
  s.clients = std::move(clients);
  return s;
}

TEST(Percentile, InterpolatesInsideABucket) {
  EXPECT_EQ(percentile({}, 0.5), std::nullopt);
  EXPECT_EQ(percentile({0, 0}, 0.5), std::nullopt);
  EXPECT_DOUBLE_EQ(*percentile({0, 0, 0, 100}, 0.5), 12);  // half of [8, 16)
  EXPECT_DOUBLE_EQ(*percentile({0, 0, 0, 100}, 0.99), 15.92);
  EXPECT_DOUBLE_EQ(*percentile({50, 50}, 0.5), 2);  // the end of the first bucket
  EXPECT_DOUBLE_EQ(*percentile({99, 0, 0, 1}, 0.99), 2);
  EXPECT_DOUBLE_EQ(*percentile({98, 0, 0, 2}, 0.99), 12);
}

TEST(Difference, RefusesToShrink) {
  EXPECT_EQ(difference({5, 7}, {2, 7}), (std::vector<std::int64_t>{3, 0}));
  EXPECT_EQ(difference({5, 7}, {5}), (std::vector<std::int64_t>{0, 7}));
  EXPECT_EQ(difference({5, 6}, {5, 7}), std::nullopt);
  EXPECT_EQ(difference({5}, {5, 7}), std::nullopt);
}

TEST(TopModel, RatesAreDifferencesOverTime) {
  const auto before = snapshot(1'000'000'000, {{42, 0, "x", "ls", "running", {usage(0, 100, {0, 10})}}});
  const auto now = snapshot(3'000'000'000, {{42, 0, "x", "ls", "running", {usage(0, 300, {0, 10, 0, 100})}}});
  const TopModel model = make_top_model(&before, now);
  ASSERT_EQ(model.clients.size(), 1u);
  EXPECT_DOUBLE_EQ(*model.clients[0].launches_per_s, 100);
  EXPECT_DOUBLE_EQ(*model.clients[0].evictions_per_s, 0);
  EXPECT_DOUBLE_EQ(*model.clients[0].latency_us_p50, 12);  // the ten old launches do not count
  EXPECT_EQ(model.devices[0].granted, 8);
  EXPECT_EQ(model.devices[0].holding, 6);
  EXPECT_EQ(model.devices[1].granted, 0);
}

/// Each program outside of MPS has the GPU to itself in its turn, and those of MPS have theirs together.
TEST(TopModel, WhatIsGrantedInTurnsDoesNotAddUp) {
  const auto client = [](std::int64_t pid, const char* slice, std::int64_t granted, bool isolated) {
    ipc::ClientUsage u = usage(0, 1, {});
    u.granted = granted;
    return ipc::Client{pid, 0, "x", slice, "running", {u}, isolated};
  };
  auto now = snapshot(1, {client(1, "ls", 132, true), client(2, "batch", 100, false), client(3, "batch", 32, false)});
  const TopDevice device = make_top_model(nullptr, now).devices[0];
  EXPECT_EQ(device.granted, 132);
  EXPECT_EQ(device.holding, 12) << "of those that run together";
  EXPECT_TRUE(device.in_turns);
  EXPECT_EQ(slice_sms(now, "/").granted, 132);
  EXPECT_EQ(slice_sms(now, "batch").granted, 132);
  now.clients = {client(1, "ls", 60, true), client(2, "ls", 40, true)};
  EXPECT_EQ(slice_sms(now, "ls").granted, 60);
  now.clients = {client(1, "ls", 60, false), client(2, "ls", 40, false)};
  EXPECT_EQ(slice_sms(now, "ls").granted, 100);
  EXPECT_FALSE(make_top_model(nullptr, now).devices[0].in_turns);
  now.devices[0].mode = "time-sliced";
  EXPECT_EQ(slice_sms(now, "ls").granted, 60);
  EXPECT_TRUE(make_top_model(nullptr, now).devices[0].in_turns);
}

TEST(Percentile, OfTheLastBucketIsWhereItBegins) {
  std::vector<std::int64_t> histogram(24);
  histogram[22] = 1;
  histogram[23] = 3;
  EXPECT_DOUBLE_EQ(*percentile(histogram, 0.1), 4194304 * 1.4);
  EXPECT_DOUBLE_EQ(*percentile(histogram, 0.5), 8388608);
  EXPECT_DOUBLE_EQ(*percentile(histogram, 0.99), 8388608) << "not 14.5 s";
}

TEST(TopModel, NoRatesWithoutAComparableSample) {
  const auto now = snapshot(2, {{42, 0, "x", "ls", "running", {usage(0, 300, {})}}});
  EXPECT_FALSE(make_top_model(nullptr, now).clients[0].launches_per_s);
  const auto other = snapshot(1, {{41, 0, "x", "ls", "running", {usage(0, 100, {})}}});
  EXPECT_FALSE(make_top_model(&other, now).clients[0].launches_per_s);
  const auto reused = snapshot(1, {{42, 0, "y", "ls", "running", {usage(0, 400, {})}}});
  EXPECT_FALSE(make_top_model(&reused, now).clients[0].launches_per_s);
  EXPECT_FALSE(make_top_model(&now, now).clients[0].launches_per_s);  // no time between them
}

TEST(TopModel, TheStateIsThatOfTheTimeBetweenTheSamples) {
  const auto state = [](const char* at_the_moment, std::int64_t launches, std::int64_t outstanding = 0) {
    const auto before = snapshot(0, {{42, 0, "x", "ls", "idle", {usage(0, 100, {})}}});
    auto now = snapshot(1'000'000'000, {{42, 0, "x", "ls", at_the_moment, {usage(0, launches, {})}}});
    now.clients[0].usage[0].outstanding = outstanding;
    return make_top_model(&before, now).clients[0].state();
  };
  EXPECT_EQ(state("idle", 204), "running");
  EXPECT_EQ(state("running", 100, 1), "running");
  EXPECT_EQ(state("running", 100), "idle");
  EXPECT_EQ(state("waiting", 204), "waiting");
  EXPECT_EQ(state("silent", 100), "silent");
}

TEST(TopModel, SlicesHaveTheSmsOfAllDevices) {
  ipc::ClientUsage shared = usage(1, 1, {});
  shared.granted = 132;
  shared.demand = 40;
  const auto now = snapshot(1, {{42, 0, "a", "a/b", "running", {usage(0, 1, {}), shared}},
                                {43, 0, "b", "a", "running", {shared}},
                                {44, 0, "c", "ab", "running", {usage(0, 1, {})}}});
  EXPECT_EQ(slice_sms(now, "a").granted, 8 + 132) << "no more of a device than it has";
  EXPECT_EQ(slice_sms(now, "a").demand, 80);
  EXPECT_EQ(slice_sms(now, "a/b").granted, 8 + 132);
  EXPECT_EQ(slice_sms(now, "/").granted, 16 + 132);
}

TEST(TopModel, OneLinePerUsedDevice) {
  ipc::ClientUsage unused = usage(1, 0, {});
  unused.granted = unused.holding = 0;
  const auto now = snapshot(1, {{43, 0, "b", "ls", "running", {usage(0, 1, {}), usage(1, 1, {})}},
                                {42, 0, "a", "ls", "running", {usage(0, 1, {}), unused}},
                                {44, 0, "c", "batch", "idle", {unused}},
                                {45, 0, "d", "batch", "idle", {}}});
  std::vector<std::pair<std::int64_t, std::int64_t>> rows;
  for (const TopClient& row : make_top_model(nullptr, now).clients)
    rows.emplace_back(row.client->pid, row.usage == nullptr ? -1 : row.usage->device);
  EXPECT_EQ(rows, (std::vector<std::pair<std::int64_t, std::int64_t>>{{44, 1}, {45, -1}, {42, 0}, {43, 0}, {43, 1}}));
}

TEST(TopJson, AddsRatesToTheReply) {
  const auto before = snapshot(0, {{42, 0, "x", "ls", "running", {usage(0, 100, {})}}});
  const auto now = snapshot(1'000'000'000, {{42, 0, "x", "ls", "running", {usage(0, 300, {0, 0, 0, 5})}}});
  const auto object = top_json(&before, now);
  const auto& u = object.at("clients").at(0).at("usage").at(0).as_object();
  EXPECT_EQ(u.at("launches_per_s"), 200.0);
  EXPECT_EQ(u.at("latency_us_p50"), 12.0);
  EXPECT_TRUE(top_json(nullptr, now).at("clients").at(0).at("usage").at(0).at("launches_per_s").is_null());
}

}  // namespace
}  // namespace gpuctl::cli
