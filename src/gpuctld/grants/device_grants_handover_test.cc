// Handovers: SMs that are taken from one client and given to another.
#include <gtest/gtest.h>

#include <set>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon::device_grants_handover_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// A batch client that runs on the whole device, and an idle one in `ls`, whose reserve is lent.
class Handovers : public testing::Test {
 protected:
  Handovers() {
    batch.demand(132);
    scheduler.update(1);
    batch.apply();
    scheduler.update(2);
    EXPECT_EQ(batch.granted(), 132u);
    EXPECT_FALSE(scheduler.waiting());
  }
  Scheduler scheduler{{gpu(132)}, briefly_held_ls_and_batch()};
  FakeProgram batch{scheduler, "batch"}, ls{scheduler, "ls"};
};

TEST_F(Handovers, WhatIsTakenIsGrantedOnlyAfterTheOtherHasLeft) {
  ls.demand(8);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(ls.granted(), 0u);
  EXPECT_EQ(ls.decided(), 8u);
  EXPECT_TRUE(scheduler.waiting());
  scheduler.update(10 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
  const std::uint32_t epoch = ls.epoch();
  batch.apply();
  scheduler.update(11 * kMs);
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(ls.epoch(), epoch + 1);
  EXPECT_EQ(ls.stub->grant[0].decided_ns, 11 * kMs);
  EXPECT_FALSE(scheduler.waiting());
}

TEST_F(Handovers, AfterTheDeadlineItIsGrantedAnyway) {
  batch.client->report({{.name = "k", .block_task_ns = 30'000'000}});  // it was not seen to take so long
  ls.demand(8);
  scheduler.update(3 * kMs);
  scheduler.update(52 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
  scheduler.update(53 * kMs);
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_FALSE(scheduler.waiting());
}

TEST_F(Handovers, NobodyWaitsForAClientWithNothingOutstanding) {
  batch.demand(0);
  scheduler.update(3);
  ls.demand(132);
  scheduler.update(4);
  EXPECT_EQ(ls.granted(), 132u);
  EXPECT_FALSE(scheduler.waiting());
}

TEST_F(Handovers, WhatWasTakenFromAnIdleClientDoesNotCountAgainstIt) {
  batch.demand(0);
  scheduler.update(3);
  ls.demand(132);
  scheduler.update(4);  // batch never says that it has applied this
  ls.demand(0);
  batch.demand(132);
  scheduler.update(100 * kMs);
  EXPECT_EQ(batch.granted(), 132u);
  ls.demand(8);
  scheduler.update(200 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
}

TEST_F(Handovers, OutstandingLaunchesHoldSmsWithoutDemandToo) {
  batch.demand(0);
  batch.stub->usage[0].outstanding = 1;
  ls.demand(132);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 0u);
  EXPECT_EQ(ls.granted(), 0u);
  batch.stub->usage[0].outstanding = 0;
  scheduler.update(4);
  EXPECT_EQ(ls.granted(), 132u);
}

TEST_F(Handovers, WhatIsFreeIsGrantedAtOnce) {
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("batch", {.max = 100, .weight = 200}, kRoot));
  scheduler.set_tree(tree, 3);
  batch.apply();
  scheduler.update(4);
  EXPECT_EQ(ls.granted(), 32u);  // no other client can use them
  batch.demand(10);
  ls.demand(132);
  scheduler.update(5);
  EXPECT_EQ(ls.granted(), 32u);  // 90 more are decided, and batch is still there
  EXPECT_EQ(ls.decided(), 122u);
}

TEST_F(Handovers, WhatComesBackIsTheClientsAgainAtOnce) {
  ls.demand(8);
  scheduler.update(3);
  EXPECT_EQ(batch.granted(), 124u);
  ls.demand(0);
  scheduler.update(2 * kMs);
  EXPECT_EQ(batch.granted(), 132u);
  EXPECT_FALSE(scheduler.waiting());
}

TEST_F(Handovers, AClientThatGoesHoldsNothing) {
  ls.demand(8);
  scheduler.update(3);
  EXPECT_EQ(ls.granted(), 0u);
  scheduler.remove(*batch.client, 4);
  EXPECT_EQ(ls.granted(), 132u);
}

TEST(HandoversAmongMany, WhatOneHasLeftGoesToAReserveFirst) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  for (const char* slice : {"one", "two", "three"}) ASSERT_TRUE(tree.create(slice, {}, kRoot));
  ASSERT_TRUE(tree.create("ls", {.reserve = 8, .weight = 200}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram one(scheduler, "one"), two(scheduler, "two"), three(scheduler, "three"), ls(scheduler, "ls");
  one.demand(132);
  two.demand(132);
  scheduler.update(2);
  EXPECT_EQ(one.granted(), 66u);
  EXPECT_EQ(two.granted(), 66u);
  one.demand(30);
  three.demand(132);
  ls.demand(8);
  scheduler.update(3);
  EXPECT_EQ(one.granted(), 30u);
  EXPECT_EQ(two.granted(), 47u);
  EXPECT_EQ(three.granted() + ls.granted(), 0u);
  two.apply();
  scheduler.update(4);
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(three.granted(), 11u);
  EXPECT_TRUE(scheduler.waiting());
  one.apply();
  scheduler.update(5);
  EXPECT_EQ(three.granted(), 47u);
  EXPECT_FALSE(scheduler.waiting());
}

TEST(HandoversAmongMany, AnIdleClientKeepsWhatIsDecidedForIt) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("busy", {.max = 84, .weight = 200}, kRoot));
  ASSERT_TRUE(tree.create("idle", {}, kRoot));
  ASSERT_TRUE(tree.create("small", {.max = 50}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram busy(scheduler, "busy"), small(scheduler, "small"), idle(scheduler, "idle");
  busy.demand(60);
  scheduler.update(2);
  busy.apply();
  scheduler.update(3);
  EXPECT_EQ(busy.granted(), 84u);
  EXPECT_EQ(idle.granted(), 24u);
  small.demand(132);
  ASSERT_TRUE(tree.change("busy", {.max = 71}, kRoot));
  scheduler.set_tree(tree, 4);
  EXPECT_EQ(busy.granted(), 71u);  // and 13 that it has not left
  EXPECT_EQ(idle.granted(), 11u);
  EXPECT_EQ(small.decided(), 50u);
  EXPECT_EQ(small.granted(), 37u);
}

TEST(HandoversAmongMany, AStrictReserveStaysFreeDuringHandovers) {
  Scheduler scheduler({gpu(132)}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram one(scheduler, "batch"), two(scheduler, "batch");
  one.demand(124);
  scheduler.update(2);
  EXPECT_EQ(one.granted(), 124u);
  two.demand(124);
  scheduler.update(3);
  EXPECT_EQ(one.granted(), 62u);
  EXPECT_EQ(two.granted(), 0u);
  FakeProgram ls(scheduler, "ls");  // the reserve is free for a client that comes now
  EXPECT_EQ(ls.granted(), 8u);
  EXPECT_EQ(two.granted(), 0u);
}

TEST(HandoversAmongMany, ANewReserveIsGrantedWhenOthersHaveLeftIt) {
  Scheduler scheduler({gpu(132)}, sched::SliceTree(sched::CapSM{132}, 0));
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.create("batch", {.weight = 200}, kRoot));
  ASSERT_TRUE(tree.create("ls", {}, kRoot));
  scheduler.set_tree(tree, 1);
  FakeProgram batch(scheduler, "batch"), a(scheduler, "ls"), b(scheduler, "ls");
  batch.demand(132);
  scheduler.update(2);
  ASSERT_EQ(batch.granted(), 132u);
  tree = scheduler.tree();
  ASSERT_TRUE(tree.change("ls", {.reserve = 8, .reserve_mode = "strict"}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(batch.granted(), 124u);
  EXPECT_EQ(a.granted() + b.granted(), 0u);
  batch.apply();
  scheduler.update(4);
  EXPECT_EQ(a.granted(), 8u);
  EXPECT_EQ(b.granted(), 8u);
}

TEST(HandoversAmongMany, ClientsOfOneSliceShareItsReserveAtRest) {
  sched::SliceTree tree = ls_and_batch(sched::ReserveMode::strict);
  ASSERT_TRUE(tree.change("ls", {.max = 8}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  FakeProgram batch(scheduler, "batch"), a(scheduler, "ls"), b(scheduler, "ls");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(a.granted(), 8u);
  EXPECT_EQ(b.granted(), 8u);
  EXPECT_FALSE(scheduler.waiting());
  a.demand(8);
  scheduler.update(3);
  EXPECT_EQ(a.granted(), 8u);
  EXPECT_EQ(b.granted(), 0u);
  b.demand(8);
  scheduler.update(4);
  EXPECT_EQ(a.granted(), 4u);
  EXPECT_EQ(b.granted(), 0u);
  a.apply();
  scheduler.update(5);
  EXPECT_EQ(b.granted(), 4u);
  EXPECT_EQ(batch.granted(), 124u);
}

TEST_F(Handovers, NoTwoArePlacedOnTheSameSms) {
  const auto place = [](const FakeProgram& program) { return program.stub->grant[0].first; };
  ls.demand(8);
  scheduler.update(3);
  batch.apply();
  scheduler.update(4);
  EXPECT_EQ(place(ls), 0u);
  EXPECT_EQ(place(batch), 8u);
  EXPECT_EQ(batch.granted(), 124u);
  FakeProgram other(scheduler, "batch");
  other.demand(132);
  scheduler.update(5);
  for (FakeProgram* program : {&batch, &other}) program->apply();
  scheduler.update(6);
  EXPECT_EQ(place(ls), 0u);
  std::set<std::uint32_t> begins{place(batch), place(other)};
  EXPECT_EQ(begins, (std::set<std::uint32_t>{8, 8 + 62}));
}

TEST(HandoversAmongMany, WhatAClientHasNotLeftIsNotIdle) {
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch());
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  batch.demand(132);
  scheduler.update(2);
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("batch", {.max = 100}, kRoot));
  ASSERT_TRUE(tree.change("ls", {.max = 8}, kRoot));
  scheduler.set_tree(tree, 3);
  EXPECT_EQ(ls.idle(), 0u);
  batch.apply();
  scheduler.update(4);
  EXPECT_EQ(ls.idle(), 24u);
  EXPECT_EQ(batch.idle(), 32u);
}

}  // namespace
}  // namespace gpuctl::daemon::device_grants_handover_test
