// Clients that give no sign of life.
#include <gtest/gtest.h>

#include <initializer_list>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kLook = 100 * kMs;

class Leases : public testing::Test {
 protected:
  Leases() { scheduler_.set_conditions({.always_preemptible = true, .lease = std::chrono::seconds(2)}, 1); }

  /// The daemon looks every 100 ms for so long, and these clients beat and obey. All the while no SM is granted twice.
  void pass(std::uint64_t ns, std::initializer_list<FakeJob*> alive) {
    for (const std::uint64_t end = now_ + ns; now_ < end; now_ += kLook) {
      for (FakeJob* program : alive) beat(*program);
      look(now_);
      for (FakeJob* program : alive) program->apply();
      look(now_ + kLook / 2);
    }
  }
  static void beat(FakeJob& program) { ipc::store(program.stub->beat, ipc::load(program.stub->beat) + 1); }
  void look(std::uint64_t now) {
    scheduler_.update(now);
    disobeying_ += scheduler_.check_deadlines(now).size();
    EXPECT_LE(a_.granted() + b_.granted(), 132u);
  }

  Scheduler scheduler_{{gpu(132)}, sched::SliceTree(sched::CapSM{132}, 0)};
  FakeJob a_{scheduler_, "/"}, b_{scheduler_, "/"};
  std::uint64_t now_ = kMs;
  std::size_t disobeying_ = 0;
};

TEST_F(Leases, AStoppedClientLosesItsDemand) {
  a_.demand(132);
  b_.demand(132);
  ipc::store(b_.stub->usage[0].outstanding, 1u);
  ipc::store(b_.stub->usage[0].holding, 66u);
  pass(1000 * kMs, {&a_, &b_});
  EXPECT_EQ(a_.granted(), 66u);
  EXPECT_EQ(b_.granted(), 66u);
  pass(1800 * kMs, {&a_});
  EXPECT_EQ(b_.granted(), 66u) << "its lease has not expired";
  pass(600 * kMs, {&a_});
  EXPECT_EQ(a_.granted(), 132u);
  EXPECT_EQ(b_.granted(), 0u);
  EXPECT_EQ(b_.client->describe().state, "silent");
  EXPECT_FALSE(b_.client->slots()[0].demand);
}

TEST_F(Leases, WhatItHoldsCountsUntilItsDeadline) {
  a_.demand(132);
  b_.demand(132);
  ipc::store(b_.stub->usage[0].holding, 66u);
  pass(1000 * kMs, {&a_, &b_});
  pass(1900 * kMs, {&a_});
  // From here on look by look.
  std::uint64_t taken = 0;
  for (; b_.granted() != 0; now_ += kMs) {
    beat(a_);
    look(now_);
    taken = now_;
  }
  EXPECT_EQ(a_.granted(), 66u) << "it may still be on them";
  for (; a_.granted() != 132; now_ += kMs) {
    ASSERT_LT(now_, taken + 160 * kMs);
    look(now_);
  }
  EXPECT_GE(now_, taken + 50 * kMs);
}

TEST_F(Leases, ItComesBackWhenItBeatsAgain) {
  a_.demand(132);
  b_.demand(132);
  ipc::store(b_.stub->usage[0].holding, 66u);
  pass(1000 * kMs, {&a_, &b_});
  pass(60'000 * kMs, {&a_});
  EXPECT_EQ(a_.granted(), 132u);
  pass(300 * kMs, {&a_, &b_});
  EXPECT_EQ(a_.granted(), 66u);
  EXPECT_EQ(b_.granted(), 66u);
  EXPECT_NE(b_.client->describe().state, "silent");
  EXPECT_EQ(disobeying_, 0u) << "it could not give anything back, and has all its time again";
}

TEST_F(Leases, AClientThatNeverBeatsKeepsItsDemand) {
  a_.demand(132);
  b_.demand(132);
  pass(10'000 * kMs, {&a_});
  EXPECT_EQ(a_.granted(), 66u);
  EXPECT_EQ(b_.granted(), 66u);
}

TEST_F(Leases, UnderAPolicyForJobsOthersDoNotWaitForAStoppedClient) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.change("/", {.policy = "fcfs"}, kRoot));
  scheduler_.set_tree(std::move(tree), now_);
  b_.head(1);
  pass(300 * kMs, {&a_, &b_});
  a_.head(2);
  pass(300 * kMs, {&a_, &b_});
  EXPECT_EQ(b_.granted(), 132u);
  EXPECT_EQ(a_.granted(), 0u);
  pass(3000 * kMs, {&a_});
  EXPECT_EQ(a_.granted(), 132u);
  EXPECT_EQ(b_.granted(), 0u);
}

}  // namespace
}  // namespace gpuctl::daemon
