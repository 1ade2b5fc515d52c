#include "gpuctld/jobs/kernel_knowledge.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "gpuctld/clients/client.h"

namespace gpuctl::daemon {
namespace {

namespace json = boost::json;

constexpr std::uint32_t kSms = 8, kUser = 1000;
constexpr std::uint64_t kMs = 1'000'000, kStart = 1000 * kMs;

/// A launch of kernel 7 with 80 block-tasks, one to an SM.
ipc::Record launch(std::uint64_t took_ns, std::uint32_t blocks = 80) {
  return {.kernel = 7,
          .issued_ns = kStart,
          .start_ns = kStart,
          .done_ns = kStart + took_ns,
          .total = blocks,
          .threads = 256,
          .per_sm = 1,
          .task_ns = 1'000'000};
}

GrantHistory::Held held(std::uint32_t sms, std::uint64_t ns) {
  return {.capsm = static_cast<double>(sms), .ns = ns, .least = sms, .most = sms};
}

std::vector<ipc::KernelPoint> points(const KernelKnowledge& knowledge) {
  return knowledge.list().empty() ? std::vector<ipc::KernelPoint>{} : knowledge.list()[0].curve;
}

TEST(KernelKnowledge, LearnsACurveFromWhatLaunchesHeld) {
  KernelKnowledge knowledge;
  EXPECT_EQ(knowledge.id(kUser, 7), KernelKnowledge::kNoId);
  EXPECT_TRUE(knowledge.curve(KernelKnowledge::kNoId, kSms).empty());
  knowledge.learn(kUser, launch(10 * kMs), kSms, held(8, 10 * kMs));
  EXPECT_TRUE(knowledge.curve(knowledge.id(kUser, 7), kSms).empty()) << "one point says nothing";
  EXPECT_DOUBLE_EQ(knowledge.speed(knowledge.id(kUser, 7), 2, 8, kSms), 0.25) << "so it counts as scaling";
  knowledge.learn(kUser, launch(10 * kMs, 40), kSms, held(4, 10 * kMs));  // half the work in the same time
  knowledge.learn(kUser, launch(10 * kMs, 40), kSms, held(2, 10 * kMs));  // and with 2 no slower
  ASSERT_EQ(points(knowledge).size(), 2u);
  EXPECT_EQ(points(knowledge)[0].sms, 2);
  EXPECT_EQ(points(knowledge)[1].sms, 8);
  EXPECT_DOUBLE_EQ(points(knowledge)[0].block_task_us, 250);
  EXPECT_DOUBLE_EQ(points(knowledge)[1].block_task_us, 125);
  EXPECT_DOUBLE_EQ(knowledge.speed(knowledge.id(kUser, 7), 2, 8, kSms), 0.5);
  EXPECT_DOUBLE_EQ(knowledge.speed(knowledge.id(kUser, 7), 8, 8, kSms), 1);
  EXPECT_DOUBLE_EQ(knowledge.speed(knowledge.id(kUser, 7), 0, 8, kSms), 0);
}

TEST(KernelKnowledge, TakesTheTimeOnTheWholeDeviceFromTheCurve) {
  KernelKnowledge knowledge;
  knowledge.learn(kUser, launch(20 * kMs), kSms, held(8, 20 * kMs));
  knowledge.learn(kUser, launch(20 * kMs), kSms, held(2, 20 * kMs));
  // In proportion, from block-tasks of 1 ms on 8 SMs, it would be 10.
  EXPECT_EQ(knowledge.learn(kUser, launch(20 * kMs), kSms, held(2, 20 * kMs)), sched::Time{20 * kMs});
}

TEST(KernelKnowledge, TakesTheTimeOfAnEvictedLaunchFromWhatItHeldNotFromItsBlockTasks) {
  KernelKnowledge knowledge;
  const auto whole = [](std::uint64_t took_ns) {
    ipc::Record record = launch(took_ns);
    record.evictions = ipc::kWholeDevice;
    return record;
  };
  const auto evicted = [](std::uint64_t took_ns, std::uint32_t times) {
    ipc::Record record = launch(took_ns);
    record.task_ns = 270'000;  // so 80 block-tasks on 8 SMs would take 2.7 ms
    record.evictions = times;
    record.evict_ns = times * std::uint64_t{100'000};
    return record;
  };
  for (int i = 0; i < 20; ++i) knowledge.learn(kUser, whole(10 * kMs), kSms, held(8, 10 * kMs));
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t had = 10 * kMs + 200'000;  // of 20 ms, with half of four evictions that take 100 us
    EXPECT_EQ(knowledge.learn(kUser, evicted(20 * kMs, 4), kSms, held(8, had)), sched::Time{10 * kMs});
  }
  EXPECT_LT(knowledge.list()[0].error, 0.01);
  EXPECT_NEAR(knowledge.list()[0].observed_us, 10'000, 1);
  // An eviction that takes longer than the rest of the time: at least half of the time counts as work.
  EXPECT_EQ(knowledge.learn(kUser, evicted(20 * kMs, 1000), kSms, held(8, 4 * kMs)), sched::Time{2 * kMs});
}

TEST(KernelKnowledge, LearnsNoPointFromAGrantThatChangedMuch) {
  KernelKnowledge knowledge;
  knowledge.learn(kUser, launch(10 * kMs), kSms, GrantHistory::Held{.capsm = 5, .ns = 10 * kMs, .least = 2, .most = 8});
  EXPECT_TRUE(points(knowledge).empty());
  knowledge.learn(kUser, launch(kMs / 2), kSms, GrantHistory::Held{.capsm = 5, .ns = kMs / 2, .least = 4, .most = 6});
  EXPECT_TRUE(points(knowledge).empty()) << "too short for a change";
  knowledge.learn(kUser, launch(10 * kMs), kSms,
                  GrantHistory::Held{.capsm = 5.4, .ns = 10 * kMs, .least = 4, .most = 6});
  ASSERT_EQ(points(knowledge).size(), 1u);
  EXPECT_EQ(points(knowledge)[0].sms, 5);
  knowledge.learn(kUser, launch(10 * kMs), kSms);
  EXPECT_EQ(points(knowledge).size(), 1u) << "nobody knows what it held";
}

TEST(KernelKnowledge, LearnsAPointFromGrantsThatChangeMuchWhenAllOfThemDo) {
  KernelKnowledge knowledge;
  const GrantHistory::Held changing{.capsm = 5, .ns = 10 * kMs, .least = 1, .most = 8};
  for (int i = 0; i < 3; ++i) knowledge.learn(kUser, launch(10 * kMs), kSms, changing);
  EXPECT_TRUE(points(knowledge).empty());
  knowledge.learn(kUser, launch(10 * kMs), kSms, changing);
  ASSERT_EQ(points(knowledge).size(), 1u);
  EXPECT_EQ(points(knowledge)[0].sms, 5);
}

TEST(KernelKnowledge, KeepsCurvesOverARestart) {
  KernelKnowledge before, after;
  before.learn(kUser, launch(20 * kMs), kSms, held(8, 20 * kMs));
  before.learn(kUser, launch(40 * kMs), kSms, held(2, 40 * kMs));
  const std::string text = boost::json::serialize(before.to_json());
  const auto loaded = after.from_json(boost::json::parse(text));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(boost::json::serialize(after.to_json()), text);
  ASSERT_FALSE(after.curve(after.id(kUser, 7), kSms).empty());
  EXPECT_DOUBLE_EQ(after.speed(after.id(kUser, 7), 1, 8, kSms), before.speed(before.id(kUser, 7), 1, 8, kSms));
}

ipc::Head head(std::uint64_t kernel) {
  return {.kernel = kernel, .total = 80, .threads = 256, .per_sm = 1};
}

ipc::Record of(std::uint64_t kernel, std::uint64_t took_ns) {
  ipc::Record record = launch(took_ns);
  record.kernel = kernel;
  record.evictions = ipc::kWholeDevice;
  return record;
}

TEST(KernelKnowledge, TellsLaunchesOfOneGridApartByTheirInput) {
  KernelKnowledge knowledge;
  for (std::uint32_t i = 0; i < 40; ++i) {
    ipc::Record record = of(7, (1 + i % 4) * kMs);
    record.input_kib = 1024 * (1 + i % 4);
    knowledge.learn(kUser, record, kSms);
  }
  ipc::Head small = head(7), large = head(7);
  small.input_kib = 1024, large.input_kib = 4096;
  EXPECT_NEAR(static_cast<double>(knowledge.predict(kUser, small, kSms).count()), kMs, kMs / 20.0);
  EXPECT_NEAR(static_cast<double>(knowledge.predict(kUser, large, kSms).count()), 4.0 * kMs, kMs / 20.0);
}

TEST(KernelKnowledge, WhatOneUserReportsChangesNothingForAnother) {
  KernelKnowledge knowledge;
  for (int i = 0; i < 10; ++i) knowledge.learn(kUser, of(7, kMs), kSms);
  for (int i = 0; i < 1000; ++i) knowledge.learn(2000, of(7, 2'879'000 * kMs), kSms);
  EXPECT_NEAR(static_cast<double>(knowledge.predict(kUser, head(7), kSms).count()), kMs, kMs / 100.0);
  EXPECT_FALSE(knowledge.knows_duration(3000, 7));
  knowledge.name(2000, "m", "k");
  EXPECT_EQ(knowledge.list().size(), 2u);
  EXPECT_EQ(knowledge.list()[0].uid, kUser);
}

TEST(KernelKnowledge, MadeUpKernelsPushOutTheUsersOwn) {
  KernelKnowledge knowledge;
  knowledge.learn(kUser, of(7, kMs), kSms);
  knowledge.learn(2000, of(1, kMs), kSms);
  knowledge.learn(2000, of(2, kMs), kSms);
  for (std::uint64_t made_up = 100; made_up < 100 + kMaxLearntKernelsOfUser - 2; ++made_up)
    knowledge.learn(2000, of(made_up, kMs), kSms);
  knowledge.learn(2000, of(1, kMs), kSms);  // launched again
  knowledge.learn(2000, of(9999, kMs), kSms);
  EXPECT_TRUE(knowledge.knows_duration(kUser, 7));
  EXPECT_TRUE(knowledge.knows_duration(2000, 1));
  EXPECT_TRUE(knowledge.knows_duration(2000, 9999));
  EXPECT_FALSE(knowledge.knows_duration(2000, 2)) << "it was launched the longest time ago";
  EXPECT_EQ(knowledge.list().size(), 1 + kMaxLearntKernelsOfUser);
  EXPECT_NE(knowledge.id(2000, 9999), knowledge.id(kUser, 7));
}

TEST(KernelKnowledge, ManyUsersPushOutThoseOfTheUserWithTheMost) {
  KernelKnowledge knowledge;
  knowledge.learn(kUser, of(7, kMs), kSms);
  for (std::uint32_t uid = 2000; uid < 2005; ++uid)
    for (std::uint64_t made_up = 0; made_up < kMaxLearntKernelsOfUser; ++made_up)
      knowledge.learn(uid, of(made_up, kMs), kSms);
  EXPECT_EQ(knowledge.list().size(), kMaxLearntKernels);
  EXPECT_TRUE(knowledge.knows_duration(kUser, 7));
  knowledge.learn(3000, of(7, kMs), kSms);
  EXPECT_TRUE(knowledge.knows_duration(3000, 7)) << "there is always room for a new user";
}

TEST(KernelKnowledge, ForgetsAUsersKernelsOrAll) {
  KernelKnowledge knowledge;
  for (const std::uint32_t uid : {kUser, 2000u})
    for (const std::uint64_t kernel : {7u, 8u}) knowledge.learn(uid, of(kernel, kMs), kSms);
  EXPECT_TRUE(knowledge.wants_names(kUser));
  EXPECT_EQ(knowledge.forget(kUser), 2u);
  EXPECT_FALSE(knowledge.wants_names(kUser));
  EXPECT_EQ(knowledge.predict(kUser, head(7), kSms), kUnknownDuration);
  EXPECT_TRUE(knowledge.knows_duration(2000, 7));
  knowledge.learn(kUser, of(9, 5 * kMs), kSms);  // takes the number of a kernel that was forgotten
  EXPECT_NEAR(static_cast<double>(knowledge.predict(2000, head(7), kSms).count()), kMs, kMs / 100.0);
  EXPECT_EQ(knowledge.forget(std::nullopt), 3u);
  EXPECT_TRUE(knowledge.list().empty());
}

TEST(KernelKnowledge, KeepsWhoseKernelsTheyAreOverARestart) {
  KernelKnowledge before, after;
  before.learn(0, of(7, kMs), kSms);
  before.learn(kUser, of(7, 20 * kMs), kSms);
  before.name(kUser, "m", "k");
  const json::value state = before.to_json();
  ASSERT_TRUE(after.from_json(state));
  EXPECT_EQ(after.predict(0, head(7), kSms), before.predict(0, head(7), kSms));
  EXPECT_EQ(after.predict(kUser, head(7), kSms), before.predict(kUser, head(7), kSms));
  EXPECT_EQ(state.at("kernels").at(0).at("key"), "0000000000000007") << "as all were in earlier versions";
  EXPECT_EQ(state.at("kernels").at(1).at("key"), "0000000000000007@1000");
  for (const char* key : {"7", "000000000000000g", "0000000000000007@", "0000000000000007@0", "0000000000000007@-1"}) {
    json::value bad = state;
    bad.at("kernels").at(0).at("key") = key;
    EXPECT_FALSE(after.from_json(bad)) << key;
  }
}

void learn_called(KernelKnowledge& knowledge, std::uint32_t user, const std::string& name) {
  knowledge.learn(user, of(ipc::kernel_hash("m", name), kMs), kSms);
  knowledge.name(user, "m", name);
}

TEST(KernelKnowledge, LongNamesTakeNoMoreThanTheirUsersShare) {
  KernelKnowledge knowledge;
  learn_called(knowledge, 7, "another's");
  for (std::size_t i = 0; i < kMaxLearntKernelsOfUser; ++i)
    learn_called(knowledge, kUser, std::to_string(i) + std::string(8000, 'k'));
  std::size_t text = 0, kernels = 0;
  for (const ipc::KernelDurations& kernel : knowledge.list()) {
    EXPECT_LE(kernel.name.size(), kMaxKernelText);
    if (kernel.uid == kUser) text += kernel.name.size() + kernel.module.size(), ++kernels;
  }
  EXPECT_LE(text, kMaxLearntTextOfUser);
  EXPECT_GT(text, kMaxLearntTextOfUser / 2);
  EXPECT_EQ(knowledge.list().size(), kernels + 1) << "another user loses nothing";
  const auto latest = ipc::kernel_hash("m", std::to_string(kMaxLearntKernelsOfUser - 1) + std::string(8000, 'k'));
  EXPECT_EQ(knowledge.name_of(kUser, latest).first.size(), kMaxKernelText) << "its number is that of the whole name";

  KernelKnowledge read;
  ASSERT_TRUE(read.from_json(knowledge.to_json()));
  EXPECT_EQ(read.list().size(), kernels + 1);
  knowledge.forget(kUser);
  for (std::size_t i = 0; i < 10; ++i) learn_called(knowledge, kUser, std::to_string(i));
  EXPECT_EQ(knowledge.list().size(), 11u) << "what was forgotten takes no room";
}

TEST(KernelKnowledge, LongNamesOfManyUsersTakeNoMoreThanThereIs) {
  KernelKnowledge knowledge;
  learn_called(knowledge, 1, "first");
  for (std::uint32_t user = 2; user < 12; ++user)
    for (int i = 0; i < 200; ++i) learn_called(knowledge, user, std::to_string(i) + std::string(1000, 'k'));
  std::size_t text = 0;
  for (const ipc::KernelDurations& kernel : knowledge.list()) text += kernel.name.size() + kernel.module.size();
  EXPECT_LE(text, kMaxLearntText);
  EXPECT_EQ(knowledge.name_of(1, ipc::kernel_hash("m", "first")).first, "first");
}

}  // namespace
}  // namespace gpuctl::daemon
