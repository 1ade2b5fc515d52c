// Isolated programs beside others that share a context: on the GPU they take turns, so neither counts for the SMs of
// the other.
#include <gtest/gtest.h>

#include "gpuctld/grants/time_slices.h"
#include "gpuctld/host/mps_places.h"
#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon::scheduler_isolation_test {
namespace {

Gpu hardware() {
  Gpu found = gpu(132);
  found.software = false;
  return found;
}

sched::SliceTree tree_of(const std::string& isolation) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(
      tree.create("ls", {.reserve = 8, .reserve_mode = "strict", .priority = 10, .isolation = isolation}, kRoot));
  EXPECT_TRUE(tree.create("batch", {.max = 100}, kRoot));
  EXPECT_TRUE(tree.create("idle", {}, kRoot));
  return tree;
}

/// A program that has joined no MPS, or that of the isolated slice `top`.
FakeProgram isolated(Scheduler& scheduler, const std::string& slice, const std::string& top = "") {
  Client client = FakeProgram::make(slice, {0});
  client.isolated = true;
  if (!top.empty()) client.mps = MpsPlaces::name_of(top);
  return FakeProgram(scheduler.add(std::move(client), 1));
}

class Isolation : public testing::Test {
 protected:
  Scheduler scheduler_{{hardware()}, tree_of("isolated")};
};

TEST_F(Isolation, NeitherTakesSmsFromTheOther) {
  FakeProgram batch(scheduler_, "batch");
  FakeProgram ls = isolated(scheduler_, "ls");
  batch.demand(132), ls.demand(132);
  scheduler_.update(2);
  EXPECT_EQ(batch.granted(), 100u) << "no reserve is kept from it";
  EXPECT_EQ(batch.mode(), ipc::Mode::common);
  EXPECT_EQ(ls.granted(), 132u) << "nor a grant from the other";
  EXPECT_TRUE(is_free(ls));
  const auto use = scheduler_.slice_use();  // of the root, batch, idle and ls
  EXPECT_EQ(use[1].granted, sched::CapSM{100});
  EXPECT_EQ(use[2].granted, sched::CapSM{});
  EXPECT_EQ(use[3].granted, sched::CapSM{132});
}

TEST_F(Isolation, ProgramsInTheMpsOfTheirSliceShareTheGpuAndTakeTurnsWithOthers) {
  sched::SliceTree tree = tree_of("isolated");
  ASSERT_TRUE(tree.create("ls/a", {.reserve = 6, .reserve_mode = "strict", .priority = 10}, kRoot));
  ASSERT_TRUE(tree.create("ls/b", {.priority = 10}, kRoot));
  scheduler_.set_tree(std::move(tree), 1);
  FakeProgram batch(scheduler_, "batch");
  FakeProgram a = isolated(scheduler_, "ls/a", "ls"), b = isolated(scheduler_, "ls/b", "ls");
  batch.demand(132), a.demand(132), b.demand(132);
  scheduler_.update(2);
  EXPECT_EQ(batch.granted(), 100u) << "neither counts for it";
  EXPECT_TRUE(is_free(a)) << "nothing is kept from it";
  EXPECT_EQ(b.granted(), 126u) << "the reserve below the isolated slice is kept from it";
  EXPECT_EQ(ipc::load(a.stub->grant[0].time_slice_us), 0u) << "its turns are its server's";
  EXPECT_EQ(scheduler_.server_us().at(MpsPlaces::name_of("ls"))[0], ipc::kDriversTimeSlice);
  EXPECT_EQ(scheduler_.server_us().at(kSharedMps)[0], kServerSecondUs);
  EXPECT_EQ(scheduler_.worked().size(), 0u);
}

TEST_F(Isolation, WhoClaimsTheMpsOfAnotherSliceHasAContextOfItsOwn) {
  FakeProgram ls = isolated(scheduler_, "ls", "ls"), liar = isolated(scheduler_, "idle", "ls");
  ls.demand(132), liar.demand(132);
  scheduler_.update(2);
  EXPECT_EQ(ls.granted(), 132u);
  EXPECT_EQ(liar.granted(), 132u);
}

TEST_F(Isolation, WhoIsNotInTheMpsOfTheOthersIsApart) {
  scheduler_.share_by(kSharedMps);
  Client client = FakeProgram::make("batch", {0});
  client.mps = kSharedMps;
  FakeProgram in(scheduler_.add(std::move(client), 1)), out(scheduler_, "idle");
  in.demand(132), out.demand(132);
  scheduler_.update(2);
  EXPECT_EQ(in.granted(), 100u);
  EXPECT_EQ(out.granted(), 132u);
  EXPECT_EQ(scheduler_.left_out_of_mps(),
            std::vector<std::string>{"slice idle: 1 program of it outside of gpuctld's MPS, by turns with those in it, "
                                     "as it did not run or served another user when they started"});
}

TEST_F(Isolation, ItsOwnMaxHoldsInItsTurns) {
  ASSERT_TRUE(is_free(isolated(scheduler_, "ls")));
  sched::SliceTree tree = tree_of("isolated");
  ASSERT_TRUE(tree.change("ls", {.max = 40}, kRoot));
  scheduler_.set_tree(std::move(tree), 2);
  FakeProgram ls = isolated(scheduler_, "ls");
  EXPECT_EQ(ls.mode(), ipc::Mode::turns);
  EXPECT_EQ(ls.granted(), 40u);
  EXPECT_EQ(ls.guaranteed(), 40u);
}

/// The slice above has nobody in the context that is shared, so its reserve is kept from nobody there, whatever else is
/// changed.
TEST(IsolationBelowAReserve, WhatAnIsolatedProgramDoesKeepsNoReserveFromOthers) {
  const auto tree = [](std::int64_t weight) {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    EXPECT_TRUE(tree.create("ls", {.reserve = 8}, kRoot));
    EXPECT_TRUE(tree.create("ls/n", {.isolation = "isolated"}, kRoot));
    EXPECT_TRUE(tree.create("batch", {}, kRoot));
    EXPECT_TRUE(tree.create("idle", {.weight = weight}, kRoot));
    return tree;
  };
  for (const char* top : {"", "ls/n"}) {
    Scheduler scheduler({hardware()}, tree(100));
    FakeProgram batch(scheduler, "batch"), ls = isolated(scheduler, "ls/n", top);
    batch.demand(132), ls.demand(132);
    ls.launch();
    scheduler.update(2);
    EXPECT_TRUE(is_free(batch)) << top;
    EXPECT_EQ(scheduler.slice_use()[1].granted, sched::CapSM{132}) << "of batch";
    scheduler.set_tree(tree(5), 3);
    ls.launch();
    scheduler.update(4);
    EXPECT_TRUE(is_free(batch)) << top;
  }
}

TEST_F(Isolation, WeightsOfTheOtherContextPutNothingInForce) {
  sched::SliceTree tree = tree_of("isolated");
  ASSERT_TRUE(tree.change("batch", {.max_unlimited = true, .weight = 300}, kRoot));
  scheduler_.set_tree(std::move(tree), 2);
  FakeProgram batch(scheduler_, "batch");
  EXPECT_TRUE(is_free(batch));
  FakeProgram ls = isolated(scheduler_, "ls");
  EXPECT_TRUE(is_free(batch) && is_free(ls));
}

TEST_F(Isolation, TurnsAreTheServersAndTheIsolatedProgramsOwn) {
  FakeProgram batch(scheduler_, "batch");
  const auto own = [](const FakeProgram& program) { return ipc::load(program.stub->grant[0].time_slice_us); };
  EXPECT_EQ(scheduler_.server_us().at(kSharedMps), std::vector<std::uint32_t>{0})
      << "there is nobody to take turns with";
  FakeProgram ls = isolated(scheduler_, "ls");
  EXPECT_EQ(scheduler_.server_us().at(kSharedMps), std::vector<std::uint32_t>{kServerSecondUs});
  EXPECT_EQ(own(batch), 0u);
  EXPECT_EQ(own(ls), ipc::kDriversTimeSlice);
  scheduler_.remove(*batch.client, 2);
  EXPECT_EQ(scheduler_.server_us().at(kSharedMps), std::vector<std::uint32_t>{0});
}

/// What MPS servers are called comes from the slices' names, in any order.
TEST(IsolationOfSeveralNames, TurnsDoNotDependOnTheName) {
  for (const char* name : {"a", "b", "iso", "ls", "prod", "server", "web"}) {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    ASSERT_TRUE(tree.create(name, {.priority = 10, .isolation = "isolated"}, kRoot));
    ASSERT_TRUE(tree.create("batch", {}, kRoot));
    Scheduler scheduler({hardware()}, tree);
    FakeProgram batch(scheduler, "batch");
    FakeProgram ls = isolated(scheduler, name, name);
    EXPECT_EQ(scheduler.server_us().at(kSharedMps)[0], kServerSecondUs) << name;
    EXPECT_EQ(scheduler.server_us().at(MpsPlaces::name_of(name))[0], ipc::kDriversTimeSlice) << name;
  }
}

TEST_F(Isolation, WhoStartedSharedStaysSoAndIsSaidToBe) {
  FakeProgram first(scheduler_, "ls"), second(scheduler_, "ls");
  EXPECT_EQ(
      scheduler_.isolation_lags(),
      std::vector<std::string>{"slice ls is isolated: 2 programs of it started before that and share a context with "
                               "others until they start again"});
  FakeProgram batch(scheduler_, "batch");
  EXPECT_EQ(scheduler_.server_us().at(kSharedMps), std::vector<std::uint32_t>{0}) << "all are in the server";
  scheduler_.set_tree(tree_of("shared"), 3);
  EXPECT_TRUE(scheduler_.isolation_lags().empty());
  FakeProgram third = isolated(scheduler_, "ls");
  EXPECT_EQ(
      scheduler_.isolation_lags("ls"),
      std::vector<std::string>{"slice ls is shared: 1 program of it started before that and has a context apart until "
                               "it starts again"});
  EXPECT_TRUE(scheduler_.isolation_lags("batch").empty());
}

TEST_F(Isolation, APolicyForJobsRulesOverBoth) {
  sched::SliceTree tree = tree_of("isolated");
  ASSERT_TRUE(tree.change("/", {.policy = "fcfs"}, kRoot));
  scheduler_.set_tree(std::move(tree), 2);
  FakeProgram batch(scheduler_, "batch");
  FakeProgram ls = isolated(scheduler_, "ls");
  EXPECT_NE(ipc::load(batch.stub->grant[0].jobs), ipc::kNoJobs);
  EXPECT_NE(ipc::load(ls.stub->grant[0].jobs), ipc::kNoJobs);
}

TEST(IsolationWithoutMps, WithoutMpsTheSettingChangesNoTurns) {
  Scheduler scheduler({hardware()}, tree_of("isolated"), {}, true);
  FakeProgram batch(scheduler, "batch");
  FakeProgram ls = isolated(scheduler, "ls");
  EXPECT_EQ(ipc::load(batch.stub->grant[0].time_slice_us), kGivingWayUs);
  EXPECT_EQ(ipc::load(ls.stub->grant[0].time_slice_us), ipc::kDriversTimeSlice);
  EXPECT_EQ(scheduler.server_us().at(kSharedMps), std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace gpuctl::daemon::scheduler_isolation_test
