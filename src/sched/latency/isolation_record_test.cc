#include "sched/latency/isolation_record.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>

#include "sched/testing/latency_plant.h"

namespace gpuctl::sched::isolation_record_test {

using namespace plant;

namespace {

/// A hundred bursts a second for so long, beside a thousand launches a second.
void go(IsolationRecord& record, const std::string& slice, const std::string& program, bool isolated, double took_ms,
        double& now_s, double for_s, std::uint64_t others = 7) {
  for (const double end_s = now_s + for_s; now_s < end_s; now_s += 0.2) {
    LatencyHistogram ended;
    ended.add(ms(took_ms), 20);
    record.add(slice, program, isolated, ended, {200, others}, seconds(0.2), seconds(now_s));
  }
}

double p99_ms(const std::optional<MeasuredIsolation>& measured) {
  return measured ? static_cast<double>(measured->p99.count()) / 1e6 : 0;
}

TEST(IsolationRecord, ProgramsAreNamedByTheirFiles) {
  const std::pair<const char*, const char*> table[] = {
      {"./server --port 80", "server"},
      {"/usr/bin/server", "server"},
      {"python3 /srv/app/serve.py --port 80", "python3 serve.py"},
      {"/usr/bin/python3.12 -m vllm.serve x", "python3.12 -m vllm.serve"},
      {"python3 -c import torch", "python3"},
      {"pythonic a b", "pythonic"},
      {"", ""},
  };
  for (const auto& [command, name] : table) EXPECT_EQ(program_of(command), name) << command;
  EXPECT_EQ(program_of(std::string(1000, 'x')).size(), IsolationRecord::kMostName);
}

TEST(IsolationRecord, LearnsByProgramAndIsolation) {
  IsolationRecord record;
  double now_s = 1;
  go(record, "ls", "server", false, 6, now_s, 1);
  EXPECT_TRUE(record.of("ls").empty()) << "a hundred bursts are too few";
  go(record, "ls", "server", false, 6, now_s, 5);
  go(record, "ls", "server", true, 3, now_s, 5);
  go(record, "ls", "other", true, 9, now_s, 5);
  go(record, "web", "server", true, 20, now_s, 5);
  const auto programs = record.of("ls");
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[0].name, "other") << "it was seen last";
  EXPECT_NEAR(p99_ms(programs[1].measured.shared), 6, 0.4);
  EXPECT_NEAR(p99_ms(programs[1].measured.isolated), 3, 0.2);
  EXPECT_NEAR(programs[1].measured.isolated->others_per_s, 1000, 1);
  EXPECT_FALSE(programs[0].measured.shared);
  // A later start takes the place of what was known, once it tells enough.
  record.started("ls", "server");
  go(record, "ls", "server", true, 4, now_s, 1);
  EXPECT_NEAR(p99_ms(record.of("ls")[0].measured.isolated), 3, 0.2);
  go(record, "ls", "server", true, 4, now_s, 4);
  EXPECT_NEAR(p99_ms(record.of("ls")[0].measured.isolated), 4, 0.3);
  EXPECT_NEAR(p99_ms(record.of("ls")[0].measured.shared), 6, 0.4);
}

/// What two of them do says nothing of a third.
TEST(IsolationRecord, KnowsBesideWhom) {
  IsolationRecord record;
  double now_s = 1;
  go(record, "ls", "server", true, 3, now_s, 5, 1);
  EXPECT_EQ(record.of("ls")[0].measured.isolated->others, 1u);
  LatencyHistogram none;
  record.add("ls", "server", true, none, {1e6, 2}, seconds(0.2), seconds(now_s));
  go(record, "ls", "server", true, 3, now_s, 5, 3);
  EXPECT_EQ(record.of("ls")[0].measured.isolated->others, 3u);
  EXPECT_NEAR(record.of("ls")[0].measured.isolated->others_per_s, 1000, 1);
  go(record, "ls", "server", true, 3, now_s, 5, ~std::uint64_t{0});
  IsolationRecord another;
  ASSERT_TRUE(another.from_json(boost::json::parse(boost::json::serialize(record.to_json()))));
  EXPECT_EQ(another.of("ls")[0].measured, record.of("ls")[0].measured);
}

/// Nor do the bursts that it had beside those before say anything of it beside these.
TEST(IsolationRecord, WhatItTookBesideOthersBeforeDoesNotCount) {
  IsolationRecord record;
  double now_s = 1;
  go(record, "ls", "server", false, 50, now_s, 5, 1);
  EXPECT_NEAR(p99_ms(record.of("ls")[0].measured.shared), 50, 4);
  go(record, "ls", "server", false, 6, now_s, 1, 2);
  EXPECT_EQ(record.of("ls")[0].measured.shared->others, 1u) << "a hundred bursts are too few";
  go(record, "ls", "server", false, 6, now_s, 4, 2);
  EXPECT_EQ(record.of("ls")[0].measured.shared->others, 2u);
  EXPECT_NEAR(p99_ms(record.of("ls")[0].measured.shared), 6, 0.4);
}

TEST(IsolationRecord, IsBounded) {
  IsolationRecord record;
  double now_s = 1;
  const std::size_t many = IsolationRecord::kMostPrograms + 50;
  for (std::size_t i = 0; i < many; ++i) go(record, "ls", "p" + std::to_string(i), false, 1, now_s, 2.5);
  EXPECT_EQ(record.of("ls").size(), IsolationRecord::kMostPrograms);
  EXPECT_EQ(record.of("ls").front().name, "p" + std::to_string(many - 1));
  record.keep([](const std::string&) { return false; });
  EXPECT_TRUE(record.of("ls").empty());
}

TEST(IsolationRecord, NobodyPushesOutOthers) {
  IsolationRecord record;
  double now_s = 1;
  go(record, "ls", "server", false, 1, now_s, 2.5);
  go(record, "ls", "another", false, 1, now_s, 2.5);
  for (std::size_t i = 0; i < 2 * IsolationRecord::kMostPrograms; ++i)
    go(record, "many", "p" + std::to_string(i), false, 1, now_s, 2.5);
  EXPECT_EQ(record.of("ls").size(), 2u);
  EXPECT_EQ(record.of("many").size(), IsolationRecord::kMostPrograms - 2);
  EXPECT_EQ(record.of("many").front().name, "p" + std::to_string(2 * IsolationRecord::kMostPrograms - 1));
}

/// Whoever owns a slice may have many below it.
TEST(IsolationRecord, NobodyPushesOutOthersByManySlices) {
  IsolationRecord record;
  double now_s = 1;
  const auto learn = [&](const std::string& slice, const std::string& program) {
    go(record, slice, program, false, 1, now_s, 2.5);
  };
  for (const char* program : {"server", "another", "third"}) learn("ls", program), learn("users/of-one", program);
  learn("/", "server");
  for (std::size_t i = 0; i < 2 * IsolationRecord::kMostPrograms; ++i)
    learn("users/of-another/s" + std::to_string(i) + "/below", "p");
  EXPECT_EQ(record.of("ls").size(), 3u);
  EXPECT_EQ(record.of("users/of-one").size(), 3u);
  EXPECT_EQ(record.of("/").size(), 1u);
  const auto of_many = [&](std::size_t i) {
    return record.of("users/of-another/s" + std::to_string(i) + "/below").size();
  };
  EXPECT_EQ(of_many(2 * IsolationRecord::kMostPrograms - 1), 1u) << "the latest of those stay";
  EXPECT_EQ(of_many(IsolationRecord::kMostPrograms), 0u);
}

/// A file with half a character is not read.
TEST(IsolationRecord, CutsNoCharacter) {
  std::string name = program_of(std::string(IsolationRecord::kMostName - 1, 'x') + "\u00e9");
  EXPECT_EQ(name, std::string(IsolationRecord::kMostName - 1, 'x'));
  IsolationRecord record, another;
  double now_s = 1;
  go(record, "ls", name, false, 6, now_s, 5);
  boost::system::error_code broken;
  const auto text = boost::json::parse(boost::json::serialize(record.to_json()), broken);
  ASSERT_FALSE(broken) << broken.message();
  EXPECT_TRUE(another.from_json(text));
}

TEST(IsolationRecord, IsKeptAsText) {
  IsolationRecord record;
  double now_s = 1;
  EXPECT_FALSE(record.take_changed());
  go(record, "ls", "server", false, 6, now_s, 5);
  go(record, "ls", "server", true, 3, now_s, 5);
  go(record, "ls", "b \"\\", true, 3, now_s, 5);
  EXPECT_TRUE(record.take_changed());
  EXPECT_FALSE(record.take_changed());
  IsolationRecord another;
  ASSERT_TRUE(another.from_json(boost::json::parse(boost::json::serialize(record.to_json()))));
  ASSERT_EQ(another.of("ls").size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(another.of("ls")[i].name, record.of("ls")[i].name);
    EXPECT_EQ(another.of("ls")[i].measured, record.of("ls")[i].measured);
  }
  for (const char* wrong :
       {"1", "{}", R"({"programs":1})", R"({"programs":[1]})", R"({"programs":[{"slice":"a"}]})",
        R"({"programs":[{"slice":"a","program":"b","shared":1}]})",
        R"({"programs":[{"slice":"a","program":"b","shared":{"bursts":1,"p99_ns":-1,"others_per_s":1}}]})",
        R"({"programs":[{"slice":"a","program":"b","shared":{"bursts":1,"p99_ns":1e300,"others_per_s":1}}]})"}) {
    EXPECT_FALSE(another.from_json(boost::json::parse(wrong))) << wrong;
    EXPECT_EQ(another.of("ls").size(), 2u);
  }
}

}  // namespace
}  // namespace gpuctl::sched::isolation_record_test
