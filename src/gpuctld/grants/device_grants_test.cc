// What is written to the clients' pages beside handovers. What is decided is tested with the scheduler.
#include "gpuctld/grants/device_grants.h"

#include <gtest/gtest.h>

#include <set>

#include "base/sm_range.h"
#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

TEST(DeviceGrants, ATimeSlicedClientTakesNothingFromOthers) {
  Gpu hardware = gpu(132);
  hardware.software = false;
  sched::SliceTree tree = ls_and_batch(sched::ReserveMode::strict);
  ASSERT_TRUE(tree.create("limited", {.max = 40}, kRoot));
  Scheduler scheduler({hardware}, tree);
  FakeProgram batch(scheduler, "batch"), limited(scheduler, "limited");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 124u);
  scheduler.set_time_sliced(true, 3);
  FakeProgram ls(scheduler, "ls");
  EXPECT_EQ(ls.granted(), 132u);  // at once, though another client is busy on all SMs
  ls.demand(8);
  limited.demand(132);
  scheduler.update(4);
  EXPECT_FALSE(scheduler.waiting());
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_EQ(ls.granted(), 132u);
  EXPECT_EQ(limited.granted(), 40u);
  scheduler.set_time_sliced(false, 5);  // MPS came: side by side from here on
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(limited.granted(), 40u);
  EXPECT_EQ(batch.granted(), 84u);
}

TEST(DeviceGrants, AProgramIsToldOfTheSmsThatAreGuaranteed) {
  Gpu hardware = gpu(132);
  hardware.software = false;
  sched::SliceTree tree = ls_and_batch(sched::ReserveMode::strict);
  ASSERT_TRUE(tree.create("limited", {.max = 40}, kRoot));
  Scheduler scheduler({hardware}, tree);
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch"), limited(scheduler, "limited");
  EXPECT_EQ(ls.guaranteed(), 0u);  // all SMs
  EXPECT_EQ(batch.guaranteed(), 124u);
  EXPECT_EQ(limited.guaranteed(), 40u);
  ls.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.guaranteed(), 124u);  // whichever clients have work
  ASSERT_TRUE(tree.change("ls", {.reserve_mode = "active"}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(batch.guaranteed(), 124u);
  ASSERT_TRUE(tree.change("ls", {.reserve_mode = "strict"}, kRoot));
  scheduler.set_tree(tree, 4);
  EXPECT_EQ(batch.guaranteed(), 124u);
  scheduler.set_time_sliced(true, 5);  // a reserve means nothing there
  EXPECT_EQ(batch.guaranteed(), 0u);
  EXPECT_EQ(limited.guaranteed(), 40u);
  ASSERT_TRUE(tree.change("limited", {.max = 0}, kRoot));
  scheduler.set_tree(tree, 6);
  EXPECT_EQ(limited.guaranteed(), 0u);  // suspended, not small
}

TEST(DeviceGrants, WhatAClientToldItsProgramIsSaid) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  EXPECT_EQ(batch.client->usage(0).sms_told, 0);
  ipc::store(batch.stub->told_sms[0], 124u);
  EXPECT_EQ(batch.client->usage(0).sms_told, 124);
  ipc::store(batch.stub->told_sms[0], 0xffffffffu);
  EXPECT_EQ(batch.client->usage(0).sms_told, kMaxSms);
}

TEST(DeviceGrants, WhereNothingIsInForceAllMayUseAll) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  for (const char* slice : {"a", "b"}) ASSERT_TRUE(tree.create(slice, {}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram a(scheduler, "a"), b(scheduler, "b");
  a.demand(132);
  b.demand(132);
  scheduler.update(2);
  for (const FakeProgram* program : {&a, &b}) {
    EXPECT_EQ(program->granted(), 132u);
    EXPECT_TRUE(is_free(*program));
  }
  EXPECT_FALSE(scheduler.waiting());
  ASSERT_TRUE(tree.change("a", {.weight = 200}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(a.granted(), 88u) << "it only loses";
  EXPECT_FALSE(is_free(a));
  EXPECT_EQ(b.granted(), 44u);
}

TEST(DeviceGrants, OfAFreeClientsDemandOnlyItsReserveIsKeptClear) {
  Scheduler scheduler({gpu(132)}, [] {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    EXPECT_TRUE(tree.create("ls", {.reserve = 8}, kRoot));
    EXPECT_TRUE(tree.create("batch", {}, kRoot));
    return tree;
  }());
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_TRUE(ls.stub->grant[0].flags & ipc::kReportWork);
  EXPECT_FALSE(batch.stub->grant[0].flags & ipc::kReportWork);
  ls.demand(132);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(ls.granted(), 132u);
}

TEST(DeviceGrants, IdleCountsWhatNobodyBusyIsGranted) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(batch.idle(), 8u);
  EXPECT_EQ(ls.idle(), 0u);
  const std::uint32_t epoch = batch.epoch();
  ls.demand(3);
  scheduler.update(3);
  EXPECT_EQ(batch.idle(), 0u);
  EXPECT_EQ(batch.epoch(), epoch);
  ls.demand(0);
  scheduler.update(4);
  batch.demand(0);
  scheduler.update(5);
  EXPECT_EQ(batch.idle(), 132u - batch.granted());
  EXPECT_EQ(ls.idle(), 132u - ls.granted());
}

TEST(DeviceGrants, UnmanagedDevicesAreNotLimited) {
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch());
  FakeProgram program(scheduler, "/", {-1, 0});
  EXPECT_EQ(program.granted(0), ipc::kUnlimited);
  EXPECT_EQ(program.granted(1), 132u);
}

TEST(DeviceGrants, SmsThatWorkersDoNotCountAreNotGranted) {
  Scheduler scheduler({gpu(300)}, sched::SliceTree(sched::CapSM{300}, 0));
  FakeProgram program(scheduler, "/");
  program.demand(300);
  scheduler.update(1);
  EXPECT_EQ(program.granted(), kMaxSms);
}

TEST(DeviceGrants, TheStrictReserveOfASliceIsToldUnlessItIsLimitedToo) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls"), root(scheduler, "/");
  const auto reserve = [](const FakeProgram& program) { return ipc::load(program.stub->grant[0].reserve); };
  EXPECT_EQ(reserve(ls), 8u);
  EXPECT_EQ(reserve(batch), 0u);
  EXPECT_EQ(reserve(root), 0u);
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.create("ls/a", {.reserve = 4, .reserve_mode = "strict"}, kRoot));
  scheduler.set_tree(tree, 2);
  FakeProgram below(scheduler, "ls/a");
  EXPECT_EQ(reserve(below), 4u);
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 124u);
  ASSERT_TRUE(tree.change("ls", {.reserve_mode = "active"}, kRoot));
  scheduler.set_tree(tree, 2);
  EXPECT_EQ(reserve(ls), 0u);
  EXPECT_EQ(reserve(below), 0u) << "no slice keeps free what the slice above lends";
  EXPECT_EQ(batch.granted(), 132u);
  ASSERT_TRUE(tree.change("ls", {.max = 8}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(reserve(ls), 0u);
}

TEST(DeviceGrants, AClientIsToldWhetherItIsAloneOnItsGpu) {
  Scheduler scheduler({gpu(132, 0), gpu(132, 1)}, briefly_held_ls_and_batch());
  FakeProgram both(scheduler, "batch", {0, 1});
  EXPECT_TRUE(both.alone(0));
  {
    FakeProgram other(scheduler, "ls", {1});
    EXPECT_TRUE(both.alone(0));
    EXPECT_FALSE(both.alone(1));
    EXPECT_FALSE(other.alone());
    scheduler.remove(*other.client, 2);
  }
  EXPECT_TRUE(both.alone(1));
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("batch", {.max = 100}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_FALSE(both.alone(0));
}

TEST(DeviceGrants, AStormGrantsRandomPartsOfWhatWasDecided) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  batch.demand(132);
  scheduler.update(1);
  Random random(1);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) {
    scheduler.storm(random, 2);
    const std::uint32_t granted = batch.granted();
    seen.insert(granted);
    EXPECT_FALSE(batch.alone());
    scheduler.update(2);  // a tick leaves it alone
    EXPECT_EQ(batch.granted(), granted);
  }
  EXPECT_GT(seen.size(), 100u);
  EXPECT_EQ(*seen.begin(), 0u);
  EXPECT_EQ(*seen.rbegin(), 124u);
  batch.demand(100);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 124u);
}

}  // namespace
}  // namespace gpuctl::daemon
