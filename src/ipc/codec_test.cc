#include "ipc/codec.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "ipc/message.h"

namespace gpuctl::ipc {
namespace {

Snapshot sample() {
  Snapshot s;
  s.time_ns = 123456789;
  s.devices = {{0, "Software GPU", "SOFT-0", "software", 8, 1 << 30, "software"}};
  s.slices = {{.path = "/", .reserve_mode = "strict", .owner_gid = 0, .granted = 8, .demand = 9, .clients = 1},
              {.path = "ls",
               .reserve = 8,
               .reserve_per_gpu = "1:4",
               .reserve_mode = "active",
               .reserve_hold_ms = 70,
               .max = 40,
               .max_per_gpu = "25%",
               .quota = "40ms/100ms",
               .burst = "20ms",
               .weight = 50,
               .priority = -2,
               .isolation = "isolated",
               .memory_min = 1 << 19,
               .memory_max = 1 << 20,
               .memory_max_per_gpu = "0:1G",
               .latency = "2x",
               .policy = "hpf",
               .frozen = "yes",
               .owner_uid = 1000,
               .owner_gid = 1001,
               .granted = 4,
               .demand = 5,
               .clients = 1,
               .faults = 3}};
  s.slices[1].totals = {.sm_seconds = 12.5, .latency_seconds = 0.75, .latency = {{16.384, 3}, {65.536, 1}}};
  s.slices[1].on_gpus = {{0, 8, 33, {}}, {1, 4, {}, 1 << 30}};
  s.clients = {
      {42, 1000, "./server --port 1", "ls", "running", {{0,         4,    5,     3,         2,     1000, 20000,
                                                         7,         12.5, 13.25, 99.0,      777,   4096, "weights",
                                                         "workers", 118,  40,    38,        1,     2,    "in force",
                                                         50,        5,    61.5,  {0, 1, 2}, {3, 4}}}}};
  s.fairness = {{"ls", 10, 2, 30, 1.5, 0.25, 1.4, 1.75, 300, 1.6, 0.5, 4.5}};
  return s;
}

TEST(Types, SnapshotGoesRoundTrip) {
  const auto object = to_json(sample());
  const Result<Snapshot> back = from_json<Snapshot>(object);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), object);
  EXPECT_EQ(back->slices[1].max, 40);
  EXPECT_FALSE(back->slices[0].max);
  EXPECT_EQ(back->slices[1].priority, -2);
  EXPECT_EQ(back->fairness.at(0).launch_worst, 4.5);
  EXPECT_EQ(back->clients[0].usage[0].evict_us_mean, 13.25);
  EXPECT_EQ(back->clients[0].usage[0].latency_us_log2, (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(Types, KernelAndStatusGoRoundTrip) {
  const auto kernel = to_json(Kernel{"_Z3addPf", "m", "persistent", "within rules", 5, 34, 30, 8, 21000});
  EXPECT_EQ(to_json(*from_json<Kernel>(kernel)), kernel);
  const auto status = to_json(Status{"0.1.0", sample().devices, 2, 1, 60, {"no MPS"}, 3});
  EXPECT_EQ(to_json(*from_json<Status>(status)), status);
  const auto with_mps = to_json(Status{.version = "0.1.0", .mps = {{{.state = "ready"}, {"ls", "ours", 2}}}});
  EXPECT_EQ(to_json(*from_json<Status>(with_mps)), with_mps);
  const auto ended = to_json(EndedClient{42, "./a", "ls", "terminated", {"SIGTERM", "SIGKILL"}, true});
  EXPECT_EQ(to_json(*from_json<EndedClient>(ended)), ended);
}

TEST(Types, AbsentOptionalsAreLeftOut) {
  EXPECT_TRUE(to_json(SliceSettings{}).empty());
  SliceSettings settings;
  settings.max = 40;
  settings.memory_unlimited = true;
  const auto object = to_json(settings);
  EXPECT_EQ(to_text(object), R"({"max":40,"memory_unlimited":true})");
  EXPECT_EQ(*from_json<SliceSettings>(object), settings);
}

TEST(Types, ReadingAListStopsAtTheFirstProblem) {
  const auto object = boost::json::parse(R"({"kernels":[{},{},{},{}]})").as_object();
  Fields fields(object);
  EXPECT_EQ(read_list<Kernel>(fields, "kernels").size(), 1u);
  EXPECT_EQ(fields.field(), "kernels[0].name");
}

TEST(Types, NullMeansAbsent) {
  const Result<SliceSettings> settings = from_json<SliceSettings>(boost::json::parse(R"({"max":null})").as_object());
  ASSERT_TRUE(settings);
  EXPECT_EQ(*settings, SliceSettings{});
}

TEST(Types, EveryFieldIsNeededAndTyped) {
  // Take each field away, then give it a wrong type: both must be refused by name.
  const auto whole = to_json(sample().clients[0].usage[0]);
  for (const auto& field : whole) {
    const std::string name(field.key().data(), field.key().size());
    auto without = whole;
    without.erase(field.key());
    Result<ClientUsage> usage = from_json<ClientUsage>(without);
    ASSERT_FALSE(usage) << name;
    EXPECT_EQ(usage.error().message, "field '" + name + "' is missing");
    auto wrong = whole;
    wrong[field.key()] = boost::json::object();
    usage = from_json<ClientUsage>(wrong);
    ASSERT_FALSE(usage) << name;
    EXPECT_NE(usage.error().message.find("field '" + name + "' must be"), std::string::npos);
  }
}

TEST(Types, NestedProblemsAreNamedByPath) {
  auto object = to_json(sample());
  object["clients"].as_array()[0].as_object()["usage"].as_array()[0].as_object()["launches"] = -1;
  const Result<Snapshot> back = from_json<Snapshot>(object);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().message, "field 'clients[0].usage[0].launches' is -1 and must be at least 0");
}

TEST(Types, AnyBytesInACommandStillMakeAValidMessage) {
  Client client;
  client.command = "bad\xff name";
  const std::string frame = encode(Reply{to_json(client), false, ""});
  EXPECT_TRUE(decode_reply(frame.substr(0, frame.size() - 1)));
}

}  // namespace
}  // namespace gpuctl::ipc
