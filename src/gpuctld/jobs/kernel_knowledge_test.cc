#include "gpuctld/jobs/kernel_knowledge.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace gpuctl::daemon {
namespace {

constexpr std::uint32_t kSms = 8;
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
  EXPECT_EQ(knowledge.id(7), KernelKnowledge::kNoId);
  EXPECT_TRUE(knowledge.curve(KernelKnowledge::kNoId, kSms).empty());
  knowledge.learn(launch(10 * kMs), kSms, held(8, 10 * kMs));
  EXPECT_TRUE(knowledge.curve(knowledge.id(7), kSms).empty()) << "one point says nothing";
  EXPECT_DOUBLE_EQ(knowledge.speed(knowledge.id(7), 2, 8, kSms), 0.25) << "so it counts as scaling";
  knowledge.learn(launch(10 * kMs, 40), kSms, held(4, 10 * kMs));  // half the work in the same time
  knowledge.learn(launch(10 * kMs, 40), kSms, held(2, 10 * kMs));  // and with 2 no slower
  ASSERT_EQ(points(knowledge).size(), 2u);
  EXPECT_EQ(points(knowledge)[0].sms, 2);
  EXPECT_EQ(points(knowledge)[1].sms, 8);
  EXPECT_DOUBLE_EQ(points(knowledge)[0].block_task_us, 250);
  EXPECT_DOUBLE_EQ(points(knowledge)[1].block_task_us, 125);
  EXPECT_DOUBLE_EQ(knowledge.speed(knowledge.id(7), 2, 8, kSms), 0.5);
  EXPECT_DOUBLE_EQ(knowledge.speed(knowledge.id(7), 8, 8, kSms), 1);
  EXPECT_DOUBLE_EQ(knowledge.speed(knowledge.id(7), 0, 8, kSms), 0);
}

TEST(KernelKnowledge, TakesTheTimeOnTheWholeDeviceFromTheCurve) {
  KernelKnowledge knowledge;
  knowledge.learn(launch(20 * kMs), kSms, held(8, 20 * kMs));
  knowledge.learn(launch(20 * kMs), kSms, held(2, 20 * kMs));
  // In proportion, from block-tasks of 1 ms on 8 SMs, it would be 10.
  EXPECT_EQ(knowledge.learn(launch(20 * kMs), kSms, held(2, 20 * kMs)), sched::Time{20 * kMs});
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
  for (int i = 0; i < 20; ++i) knowledge.learn(whole(10 * kMs), kSms, held(8, 10 * kMs));
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t had = 10 * kMs + 200'000;  // of 20 ms, with half of four evictions that take 100 us
    EXPECT_EQ(knowledge.learn(evicted(20 * kMs, 4), kSms, held(8, had)), sched::Time{10 * kMs});
  }
  EXPECT_LT(knowledge.list()[0].error, 0.01);
  EXPECT_NEAR(knowledge.list()[0].observed_us, 10'000, 1);
  // An eviction that takes longer than the rest of the time: at least half of the time counts as work.
  EXPECT_EQ(knowledge.learn(evicted(20 * kMs, 1000), kSms, held(8, 4 * kMs)), sched::Time{2 * kMs});
}

TEST(KernelKnowledge, LearnsNoPointFromAGrantThatChangedMuch) {
  KernelKnowledge knowledge;
  knowledge.learn(launch(10 * kMs), kSms, GrantHistory::Held{.capsm = 5, .ns = 10 * kMs, .least = 2, .most = 8});
  EXPECT_TRUE(points(knowledge).empty());
  knowledge.learn(launch(kMs / 2), kSms, GrantHistory::Held{.capsm = 5, .ns = kMs / 2, .least = 4, .most = 6});
  EXPECT_TRUE(points(knowledge).empty()) << "too short for a change";
  knowledge.learn(launch(10 * kMs), kSms, GrantHistory::Held{.capsm = 5.4, .ns = 10 * kMs, .least = 4, .most = 6});
  ASSERT_EQ(points(knowledge).size(), 1u);
  EXPECT_EQ(points(knowledge)[0].sms, 5);
  knowledge.learn(launch(10 * kMs), kSms);
  EXPECT_EQ(points(knowledge).size(), 1u) << "nobody knows what it held";
}

TEST(KernelKnowledge, LearnsAPointFromGrantsThatChangeMuchWhenAllOfThemDo) {
  KernelKnowledge knowledge;
  const GrantHistory::Held changing{.capsm = 5, .ns = 10 * kMs, .least = 1, .most = 8};
  for (int i = 0; i < 3; ++i) knowledge.learn(launch(10 * kMs), kSms, changing);
  EXPECT_TRUE(points(knowledge).empty());
  knowledge.learn(launch(10 * kMs), kSms, changing);
  ASSERT_EQ(points(knowledge).size(), 1u);
  EXPECT_EQ(points(knowledge)[0].sms, 5);
}

TEST(KernelKnowledge, KeepsCurvesOverARestart) {
  KernelKnowledge before, after;
  before.learn(launch(20 * kMs), kSms, held(8, 20 * kMs));
  before.learn(launch(40 * kMs), kSms, held(2, 40 * kMs));
  const std::string text = boost::json::serialize(before.to_json());
  const auto loaded = after.from_json(boost::json::parse(text));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(boost::json::serialize(after.to_json()), text);
  ASSERT_FALSE(after.curve(after.id(7), kSms).empty());
  EXPECT_DOUBLE_EQ(after.speed(after.id(7), 1, 8, kSms), before.speed(before.id(7), 1, 8, kSms));
}

}  // namespace
}  // namespace gpuctl::daemon
