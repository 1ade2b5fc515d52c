// What is promised while it can and cannot be recorded.
#include "gpuctld/restart/holdings_record.h"

#include <gtest/gtest.h>

#include "gpuctld/restart/holdings.h"
#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon::holdings_record_test {

constexpr std::uint64_t kMs = 1'000'000, kMiB = 1 << 20;

class Record : public testing::Test {
 protected:
  static sched::SliceTree make_tree() {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    EXPECT_TRUE(tree.create("a", {.memory_max = 640 * kMiB}, kRoot));
    EXPECT_TRUE(tree.create("b", {}, kRoot));
    EXPECT_TRUE(tree.create("ls", {.reserve = 8, .reserve_hold_ms = 60'000}, kRoot));
    return tree;
  }
  Record() { record_.begin(kMs); }

  Result<void> store(const std::string& text) {
    ++tries_;
    if (full_) return fail("the disk is full");
    ++written_;
    text_ = text;
    return {};
  }
  std::uint32_t recorded_sms(const std::string& slice) const {
    const auto recorded = understand_holdings(text_).value();
    for (const Holding& holding : recorded.attached)
      if (holding.slice == slice) return holding.promise.sms;
    return 0;
  }
  bool hold(FakeProgram& program, std::uint64_t bytes) {
    return scheduler_.hold_memory(*program.client, 0, bytes, now_ns_).granted;
  }
  void look(std::uint64_t ms) {
    now_ns_ = ms * kMs;
    scheduler_.update(now_ns_);
    record_.tidy(now_ns_);
  }

  std::string text_;
  bool full_ = false;
  int tries_ = 0, written_ = 0;
  std::uint64_t now_ns_ = kMs;
  Scheduler scheduler_{{gpu(132)}, make_tree(), {.always_preemptible = true}};
  std::vector<std::string> log_;
  HoldingsRecord record_{scheduler_, [this](const std::string& text) { return store(text); },
                         [this](const std::string& line) { log_.push_back(line); }};
};

TEST_F(Record, NobodyGetsMoreThanIsRecordedUntilItCanBe) {
  FakeProgram program(scheduler_, "b");
  program.demand(40);
  look(2);
  program.apply();
  ASSERT_EQ(program.granted(), 132u);
  sched::SliceTree limited = make_tree();
  ASSERT_TRUE(limited.change("b", {.max = 10}, kRoot));
  scheduler_.set_tree(limited, 3 * kMs);
  program.apply();
  look(2000);
  ASSERT_EQ(recorded_sms("b"), 10u);

  full_ = true;
  scheduler_.set_tree(make_tree(), 2001 * kMs);
  for (std::uint64_t ms = 2002; ms < 2500; ++ms) look(ms);
  EXPECT_EQ(program.granted(), 10u);
  EXPECT_EQ(recorded_sms("b"), 10u);
  ASSERT_NE(record_.problem(), nullptr);
  EXPECT_NE(record_.problem()->find("the disk is full"), std::string::npos);
  ASSERT_EQ(log_.size(), 1u) << "said once";

  FakeProgram newcomer(scheduler_, "a");
  newcomer.demand(40);
  look(2501);
  EXPECT_EQ(newcomer.granted(), 0u);

  full_ = false;
  for (std::uint64_t ms = 2502; ms < 2502 + 1100; ++ms) {
    look(ms);
    program.apply();
  }
  EXPECT_EQ(record_.problem(), nullptr);
  EXPECT_EQ(program.granted() + newcomer.granted(), 132u);
  EXPECT_EQ(recorded_sms("b"), program.granted());
  EXPECT_EQ(log_.size(), 2u);
}

TEST_F(Record, AFailureIsTriedAgainLessAndLessOften) {
  full_ = true;
  FakeProgram program(scheduler_, "b");
  program.demand(40);
  look(2);
  const int before = tries_;
  for (std::uint64_t ms = 3; ms < 10'000; ++ms) look(ms);
  EXPECT_GT(tries_ - before, 9);
  EXPECT_LT(tries_ - before, 25);
}

/// The record says more than is true, which no later promise corrects.
TEST_F(Record, WhatCouldNotBeTakenOutIsTriedAgainToo) {
  FakeProgram program(scheduler_, "b");
  program.demand(40);
  look(2);
  full_ = true;
  scheduler_.remove(*program.client, 3 * kMs);
  record_.note_gone();
  record_.tidy(3 * kMs, true);
  EXPECT_NE(recorded_sms("b"), 0u);
  full_ = false;
  look(1500);
  EXPECT_EQ(recorded_sms("b"), 0u);
}

TEST_F(Record, AProgramForWhichNothingIsInForceGoesOn) {
  Scheduler scheduler({gpu(132)}, sched::SliceTree(sched::CapSM{132}, 0));
  HoldingsRecord record(
      scheduler, [](const std::string&) { return Result<void>(fail("full")); }, [](const auto&) {});
  record.begin(kMs);
  FakeProgram program(scheduler, "/");
  program.demand(40);
  scheduler.update(2 * kMs);
  EXPECT_TRUE(is_free(program));
  EXPECT_EQ(program.granted(), 132u);
}

TEST_F(Record, MemoryIsRecordedBeforeItIsGranted) {
  FakeProgram one(scheduler_, "a"), two(scheduler_, "a");
  full_ = true;
  EXPECT_FALSE(hold(one, kMiB));
  full_ = false;
  now_ns_ += 10'000 * kMs;
  ASSERT_TRUE(hold(one, 300 * kMiB));
  ASSERT_TRUE(hold(two, 200 * kMiB));
  full_ = true;
  EXPECT_TRUE(hold(two, 201 * kMiB)) << "a little more is recorded";
  EXPECT_FALSE(hold(two, 300 * kMiB));
  EXPECT_TRUE(hold(two, 100 * kMiB));
}

/// Or each would be promised what the other has, by the next daemon.
TEST_F(Record, NoMoreMemoryThanTheLimitIsRecordedAltogether) {
  FakeProgram one(scheduler_, "a"), two(scheduler_, "a");
  for (const auto& [first, second] :
       {std::pair(300, 100), std::pair(301, 339), std::pair(500, 135), std::pair(1, 639)}) {
    EXPECT_TRUE(hold(two, 0));
    EXPECT_TRUE(hold(one, static_cast<std::uint64_t>(first) * kMiB));
    EXPECT_TRUE(hold(two, static_cast<std::uint64_t>(second) * kMiB));
    std::uint64_t sum = 0;
    const auto recorded = understand_holdings(text_).value();
    for (const Holding& holding : recorded.attached) sum += holding.promise.memory;
    EXPECT_GE(sum, static_cast<std::uint64_t>(first + second) * kMiB);
    EXPECT_LE(sum, 640 * kMiB);
  }
}

TEST_F(Record, SmallAllocationsAreNotWrittenOneByOne) {
  FakeProgram program(scheduler_, "a");
  const int before = written_;
  for (std::uint64_t i = 1; i <= 640; ++i) EXPECT_TRUE(hold(program, i * kMiB));
  EXPECT_LE(written_ - before, 70);
}

TEST_F(Record, AHoldIsRecordedBeforeMuchOfItHasPassed) {
  FakeProgram ls(scheduler_, "ls");
  ls.launch();
  look(100'000);
  look(102'000);
  const auto worked = understand_holdings(text_).value().worked;
  ASSERT_EQ(worked.size(), 1u);
  EXPECT_EQ(worked[0], (LastWork{"ls", "GPU-0", 100'000 * kMs}));
  const int before = written_;
  for (std::uint64_t s = 103; s < 160; ++s) {
    ls.launch();
    look(s * 1000);
  }
  EXPECT_GE(written_ - before, 5);
  EXPECT_LE(written_ - before, 12) << "an eighth of it is 7.5 s";
}

}  // namespace gpuctl::daemon::holdings_record_test
