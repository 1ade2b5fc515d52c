// What others get of clients that do nothing. Reserves in mode `active`: kept while their slice has work and for a
// while after, lent otherwise. Leases: a client that gives no sign of life has no demand.
#include <gtest/gtest.h>

#include <initializer_list>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon {
namespace {

/// `ls` has the default mode: its reserve is kept for 100 ms after its latest work. A batch client is busy.
class ActiveReserve : public testing::Test {
 protected:
  ActiveReserve() {
    batch.demand(132);
    update(1);
    EXPECT_EQ(batch.granted(), 132u);  // nothing has begun in ls
    EXPECT_EQ(ls.granted(), 0u);
    EXPECT_EQ(scheduler.again_ns(), UINT64_MAX);
  }
  void update(std::uint64_t ms) {
    scheduler.update(ms * kMs);
    batch.apply();
    ls.apply();
    scheduler.update(ms * kMs);
  }
  Scheduler scheduler{{gpu(132)}, ls_and_batch(sched::ReserveMode::active)};
  FakeProgram batch{scheduler, "batch"}, ls{scheduler, "ls"};
};

TEST_F(ActiveReserve, IsKeptBetweenLaunchesAndLentAfterTheHold) {
  ls.demand(2);
  update(10);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(scheduler.again_ns(), 110 * kMs);
  ls.demand(0);
  update(20);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(ls.granted(), 8u);
  update(109);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(scheduler.again_ns(), 110 * kMs);
  update(110);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(ls.granted(), 0u);
  EXPECT_EQ(scheduler.again_ns(), UINT64_MAX);
  ls.demand(2);
  update(500);
  EXPECT_EQ(batch.granted(), 124u);
}

TEST_F(ActiveReserve, WorkThatIsOutstandingKeepsIt) {
  ls.demand(1);
  update(10);
  update(1000);
  EXPECT_EQ(batch.granted(), 124u);
  ls.demand(0);
  ipc::store(ls.stub->usage[0].outstanding, 1u);
  update(2000);
  EXPECT_EQ(batch.granted(), 124u);
}

TEST_F(ActiveReserve, LaunchesThatNobodySawRunCountToo) {
  for (std::uint64_t ms = 100; ms < 1000; ms += 90) {
    ls.launch();
    update(ms);
    EXPECT_EQ(batch.granted(), 124u) << ms;
    EXPECT_EQ(ipc::load(ls.stub->grant[0].reserve), 8u);
  }
  update(2000);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(ipc::load(ls.stub->grant[0].reserve), 0u);
}

TEST_F(ActiveReserve, LaunchesOfOthersDoNotCount) {
  batch.launch();
  update(10);
  EXPECT_EQ(batch.granted(), 132u);
}

TEST_F(ActiveReserve, TheHoldIsTheSlicesOwn) {
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("ls", {.reserve_hold_ms = 1000}, kRoot));
  scheduler.set_tree(tree, 2 * kMs);
  ls.launch();
  update(10);
  update(1009);
  EXPECT_EQ(batch.granted(), 124u);
  update(1010);
  EXPECT_EQ(batch.granted(), 132u);
}

/// `batch` alone on the GPU, after a program of `ls` that launched something at 10 ms has ended at `ended_ms`.
class HeldReserve : public testing::Test {
 protected:
  void end_ls(std::uint64_t ended_ms) {
    FakeProgram ls(scheduler, "ls");
    batch.demand(132);
    ls.launch();
    update(10);
    EXPECT_EQ(batch.granted(), 124u);
    scheduler.remove(*ls.client, ended_ms * kMs);
  }
  void update(std::uint64_t ms) {
    scheduler.update(ms * kMs);
    batch.apply();
    scheduler.update(ms * kMs);
  }
  Scheduler scheduler{{gpu(132)}, ls_and_batch(sched::ReserveMode::active)};
  FakeProgram batch{scheduler, "batch"};
};

TEST_F(HeldReserve, TheHoldOutlivesTheProgram) {
  end_ls(20);
  update(20);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_FALSE(is_free(batch)) << "the reserve is in force as long as it is held";
  EXPECT_EQ(scheduler.again_ns(), 110 * kMs);
  update(109);
  EXPECT_EQ(batch.granted(), 124u);
  update(110);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_TRUE(is_free(batch)) << "and not longer";
}

TEST_F(HeldReserve, LaunchesThatNobodySawBeforeTheEndCount) {
  FakeProgram ls(scheduler, "ls");
  batch.demand(132);
  update(10);
  EXPECT_EQ(batch.granted(), 132u);
  ls.launch();
  scheduler.remove(*ls.client, 20 * kMs);
  update(20);
  EXPECT_EQ(batch.granted(), 124u);
  update(120);
  EXPECT_EQ(batch.granted(), 132u);
}

TEST_F(HeldReserve, AProgramThatComesAndIsIdleHoldsNothingAnew) {
  end_ls(20);
  FakeProgram next(scheduler, "ls");
  update(109);
  EXPECT_EQ(batch.granted(), 124u);
  update(110);
  EXPECT_EQ(batch.granted(), 132u);
}

TEST_F(HeldReserve, OtherChangesOfTheTreeDoNotEndIt) {
  end_ls(20);
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.create("a-new-one", {}, kRoot));
  scheduler.set_tree(tree, 30 * kMs);
  update(31);
  EXPECT_EQ(batch.granted(), 124u);
  ASSERT_TRUE(tree.remove("ls", 0, kRoot));
  ASSERT_TRUE(tree.create("ls", {.reserve = 8}, kRoot));
  scheduler.set_tree(tree, 32 * kMs);
  update(33);
  EXPECT_EQ(batch.granted(), 124u) << "by its name it is the same";
}

TEST_F(ActiveReserve, AnotherModeIsInForceAtOnce) {
  const auto set = [&](const char* mode, std::uint64_t ms) {
    sched::SliceTree tree = scheduler.tree();
    ASSERT_TRUE(tree.change("ls", {.reserve_mode = mode}, kRoot));
    scheduler.set_tree(tree, ms * kMs);
    update(ms);
  };
  set("strict", 2);
  EXPECT_EQ(batch.granted(), 124u);
  set("active", 3);
  EXPECT_EQ(batch.granted(), 132u) << "it has had no work";
  set("strict", 4);
  ls.launch();
  update(5);
  EXPECT_EQ(batch.granted(), 124u);
  set("active", 104);
  EXPECT_EQ(batch.granted(), 124u) << "work is noted in every mode";
  set("strict", 105);
  EXPECT_EQ(batch.granted(), 124u);
  set("active", 106);
  EXPECT_EQ(batch.granted(), 132u);
}

TEST(ActiveReserves, AReserveIsKeptOnTheGpuWhereItsSliceIsActive) {
  Scheduler scheduler({gpu(132), gpu(100, 1)}, ls_and_batch(sched::ReserveMode::active));
  FakeProgram batch(scheduler, "batch", {0, 1}), ls(scheduler, "ls", {0, 1});
  batch.demand(132, 0);
  batch.demand(100, 1);
  ls.launch(1, 1);
  scheduler.update(5);
  EXPECT_EQ(batch.granted(0), 132u);
  EXPECT_EQ(batch.granted(1), 92u);
}

constexpr std::uint64_t kLook = 100 * kMs;

class Leases : public testing::Test {
 protected:
  Leases() { scheduler_.set_options({.always_preemptible = true, .lease = std::chrono::seconds(2)}, 1); }

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
  const ipc::Client stopped = b_.client->describe();
  EXPECT_EQ(stopped.state, "silent");
  EXPECT_EQ(stopped.usage[0].granted + a_.granted(), 132);
  EXPECT_EQ(stopped.usage[0].holding, 0) << "what it held when it was stopped is another's now";
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

TEST(Scheduler, MoreProgramsThanSmsOfAMaxDoNotWait) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("batch", {.max = 2}, kRoot));
  Scheduler scheduler({gpu(132)}, tree, {.reserve_by_parts = true});
  FakeProgram a(scheduler, "batch"), b(scheduler, "batch"), c(scheduler, "batch");
  std::uint32_t granted = 0;
  for (FakeProgram* program : {&a, &b, &c}) program->demand(132);
  scheduler.update(2);
  for (const FakeProgram* program : {&a, &b, &c}) {
    granted += program->granted();
    EXPECT_EQ(program->client->describe().state, "running");
    EXPECT_EQ(program->client->slots()[0].terms.common_sms, 2u);
  }
  EXPECT_EQ(granted, 2u) << "one has none";
}

TEST(Scheduler, SaysHowKernelsRun) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("ls", {.reserve = 8, .reserve_mode = "active"}, kRoot));
  ASSERT_TRUE(tree.create("batch", {}, kRoot));
  Scheduler scheduler({gpu(132)}, tree, {.reserve_by_parts = true});
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  const auto common = [](const FakeProgram& program) { return program.client->slots()[0].terms.common_sms; };
  batch.demand(132);
  ls.demand(8);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(batch.mode(), ipc::Mode::common);
  EXPECT_EQ(common(batch), 124u);
  {
    FakeProgram second(scheduler, "batch");
    second.demand(132);
    scheduler.update(3);
    EXPECT_EQ(batch.granted(), 62u);
    EXPECT_EQ(batch.mode(), ipc::Mode::common);
    EXPECT_EQ(common(second), 124u);
    scheduler.remove(*second.client, 4);
  }
  ls.demand(0);
  scheduler.update(3'000'000'000);
  scheduler.update(6'000'000'000);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(batch.mode(), ipc::Mode::lent);
  EXPECT_EQ(common(batch), 132u);
  ls.demand(8);
  scheduler.update(6'000'000'001);
  EXPECT_EQ(batch.mode(), ipc::Mode::common);
  scheduler.set_options({.reserve_by_parts = false}, 6'000'000'002);
  EXPECT_EQ(batch.mode(), ipc::Mode::workers);
}

/// Nothing else is in force, so the program of the reserve's slice competes for no other SM.
TEST(ActiveReserveAlone, WhileItIsKeptWhatItLeavesIsSettled) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("ls", {.reserve = 8, .reserve_mode = "active"}, kRoot));
  ASSERT_TRUE(tree.create("batch", {}, kRoot));
  Scheduler scheduler({gpu(132)}, std::move(tree));
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.demand(132);
  ls.demand(2);
  scheduler.update(10 * kMs);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(batch.mode(), ipc::Mode::common) << "nothing can take any of these away";
  ls.demand(0);
  scheduler.update(111 * kMs);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(batch.mode(), ipc::Mode::lent) << "8 of these are lent";
}

}  // namespace
}  // namespace gpuctl::daemon
